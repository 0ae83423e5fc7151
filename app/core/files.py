"""Small files that are either the old ones or the new ones, never half of each."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def read_start(path: Path, most: int) -> bytes:
    """The file, or its first ``most`` bytes. Raises OSError."""
    with path.open("rb") as stream:
        # A read asks for its memory before it knows how much is there.
        return stream.read(min(most, os.fstat(stream.fileno()).st_size))


def write_whole(path: Path, content: bytes) -> None:
    """Replaces ``path`` in one step, readable by its owner only. Raises OSError; the old file is then untouched."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        _write_private(part, content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _write_private(path: Path, content: bytes) -> None:
    # O_EXCL: somebody else's file of that name is never written through.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with open(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(descriptor)


def private_folder(path: Path) -> Path:
    """Makes the folder, or the one that is there, its owner's alone."""
    path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    path.chmod(PRIVATE_FOLDER)
    return path
