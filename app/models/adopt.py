"""Models of the table that other programs already keep on this computer: matched by size and hash, used in place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from app.core.errors import FileError
from app.models.hashing import known_sha256, remembered_sha256
from app.models.places import note_place
from app.models.store import home_of, is_whole
from app.models.stores import Found, scan_stores
from app.models.table import ModelFile, ModelRecord
from app.models.transfer import Tell


async def adopt(record: ModelRecord, tell: Tell) -> bool:
    """Whether the model is whole on this computer, after a look into the stores of other programs.

    A file whose hash nobody knows is read once, with progress; nothing else here takes long.
    """
    if await asyncio.to_thread(is_whole, record):
        return True
    for candidates in sets_of(record, await asyncio.to_thread(scan_stores)):
        if await _all_right(record, candidates, tell):
            await asyncio.to_thread(note_found, record, candidates)
            return True
    return False


async def _all_right(record: ModelRecord, candidates: Sequence[Found], tell: Tell) -> bool:
    for file, candidate in zip(record.files, candidates, strict=True):
        try:
            if (candidate.sha256 or await remembered_sha256(candidate.path, tell)) != file.sha256:
                return False
        except FileError:
            return False
    return True


def adopt_known(record: ModelRecord, found: Sequence[Found]) -> bool:
    """As ``adopt``, but nothing is read: only files whose hash is known already count."""
    if is_whole(record):
        return True
    for candidates in sets_of(record, found):
        if all(hash_of(c) == file.sha256 for file, c in zip(record.files, candidates, strict=True)):
            note_found(record, candidates)
            return True
    return False


def hash_of(found: Found) -> str:
    """By its store's word, else by what was read here before; "" when nobody knows."""
    return found.sha256 or known_sha256(found.path)


def sets_of(record: ModelRecord, found: Iterable[Found]) -> list[Sequence[Found]]:
    """What may be the model's files, one set a place; those whose hash is known first.

    The files of a split model are opened by their names, so they must lie side by side.
    """
    fitting = [[item for item in found if may_be(item, file)] for file in record.files]
    if len(fitting) == 1:
        return [[item] for item in sorted(fitting[0], key=lambda item: not hash_of(item))]
    if any(home_of(record, file).exists() for file in record.files):
        return []
    by_path = {item.path: item for items in fitting for item in items}
    paths = ([item.path.with_name(file.name) for file in record.files] for item in fitting[0])
    return [[by_path[path] for path in side_by_side] for side_by_side in paths if _all_in(side_by_side, by_path)]


def _all_in(paths: Sequence[Path], found: dict[Path, Found]) -> bool:
    return all(path in found for path in paths)


def may_be(found: Found, file: ModelFile) -> bool:
    """By size, and by hash where both are known. A file without a hash of its own is no file of the table."""
    known = hash_of(found)
    return bool(file.sha256) and found.bytes == file.bytes and known in ("", file.sha256)


def note_found(record: ModelRecord, candidates: Sequence[Found]) -> None:
    for file, found in zip(record.files, candidates, strict=True):
        note_place(record.key, file.name, found.path, found.origin)
