"""Takes a model off this computer: what Pooled fetched is deleted, what belongs to others is only let go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.core.errors import FileError
from app.models.disk import taken_bytes
from app.models.locks import LOCK_NAME, alone_now
from app.models.places import Origin, forget_place, origin_of, place_of
from app.models.rows import forget_row
from app.models.store import folder_of
from app.models.table import ModelRecord


def remove(record: ModelRecord) -> int:
    """How many bytes of the disk are free again.

    A person's own file leaves the list and stays on the disk. Raises FileError while the model is being fetched, for
    one that is not here, and for one that another program keeps, where nothing of it is Pooled's own.
    """
    folder = folder_of(record)
    placed = (file.name for file in record.files if place_of(record.key, file.name))
    origins = {origin for name in placed if (origin := origin_of(record.key, name))}
    if not _has_own_files(folder):
        return _let_go(record, origins)
    with alone_now(folder, record.label):
        return sum(_deleted(path) for path in list(_own_files(folder)))


def _let_go(record: ModelRecord, origins: set[Origin]) -> int:
    kept_by = origins - {Origin.OWN}
    if kept_by:
        name = min(origin.value for origin in kept_by)
        raise FileError(f"{record.label} lies in the store of {name}.", f"Remove it with {name}.")
    if not origins:
        raise FileError(f"{record.label} is not on this computer.")
    for file in record.files:
        forget_place(record.key, file.name)
    forget_row(record.key)
    return 0


def _has_own_files(folder: Path) -> bool:
    return next(_own_files(folder), None) is not None


def _own_files(folder: Path) -> Iterator[Path]:
    """The folder's files and those of the folder of parts; a link is a file of its own and is not followed."""
    for place in (folder, folder / "partial"):
        if place.is_dir() and not place.is_symlink():
            yield from (path for path in place.iterdir() if path.name != LOCK_NAME and not _is_folder(path))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _deleted(path: Path) -> int:
    """The bytes it took."""
    taken = taken_bytes(path)
    try:
        path.unlink()
    except OSError as error:
        raise FileError(
            f"{path.name} cannot be deleted: {error.strerror}.", "End what uses it and try again."
        ) from error
    return taken
