"""Room on the disk, what files really take of it, and how its faults are worded."""

from __future__ import annotations

import shutil
from pathlib import Path

from app.core.errors import FileError

MAKE_ROOM = "Make room and start again; what is there is kept."
_BLOCK = 512


def check_space(folder: Path, need: int) -> None:
    """Raises FileError unless so many bytes are free on the folder's disk."""
    free = shutil.disk_usage(folder).free
    if need > free:
        raise FileError(
            f"The download needs {need / 1e9:.1f} GB, the disk has {free / 1e9:.1f} GB left.",
            MAKE_ROOM,
        )


def unwritable(name: str, error: OSError) -> FileError:
    """What a person reads when the disk refused."""
    return FileError(f"{name} cannot be written: {error.strerror}.", MAKE_ROOM)


def taken_bytes(path: Path) -> int:
    """Bytes a file takes of the disk, 0 for none: of a sparse one only what was written, where the system says it."""
    try:
        stat = path.lstat()
    except OSError:
        return 0
    blocks: int | None = getattr(stat, "st_blocks", None)
    return stat.st_size if blocks is None else blocks * _BLOCK
