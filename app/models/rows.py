"""Models that are no part of this build, each a row by its header: a person's own files, and other programs'."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.core.errors import FileError, ModelError
from app.models.adopt import adopt_known, may_be
from app.models.describe import Described, describe
from app.models.hashing import remembered_sha256
from app.models.kept import Kept, Stamp, stamp_of
from app.models.places import Origin, note_place
from app.models.store import is_whole
from app.models.stores import Found, scan_stores
from app.models.table import ModelRecord, ModelTable, builtin_table
from app.models.transfer import Tell

log = logging.getLogger(__name__)


_ROWS = Kept("rows", ModelRecord)
_SEEN = Kept("seen", str)
"""The key of a file that was looked at, "" of one that cannot be used."""


def full_table(table: ModelTable | None = None) -> ModelTable:
    """The table with every row of this computer whose files are still there and unchanged."""
    table = table or builtin_table()
    for record in _ROWS.all().values():
        if table.find(record.key) is None and is_whole(record):
            table = table.with_record(record)
    return table


async def take_file(path: Path, tell: Tell, table: ModelTable | None = None) -> ModelRecord:
    """A person's own ``.gguf`` becomes a row, or the table's if it is that very file. It stays where it is.

    Raises FileError for a file that is damaged or not there, ModelError for a model that cannot run here.
    """
    path, stamp = await asyncio.to_thread(_placed, path)
    if stamp is None:
        raise FileError(f"{path.name or path} is not there, or is no file.", "Check the path.")
    for record in (table or builtin_table()).models:
        (file, *others) = record.files
        if not others and file.bytes == stamp.bytes and file.sha256 == await remembered_sha256(path, tell):
            note_place(record.key, file.name, path, Origin.OWN)
            return record
    described = await asyncio.to_thread(describe, path)
    return await asyncio.to_thread(keep_row, described, path, Origin.OWN)


def _placed(path: Path) -> tuple[Path, Stamp | None]:
    path = path.expanduser().absolute()
    return path, stamp_of(path)


def keep_row(described: Described, path: Path, origin: Origin) -> ModelRecord:
    """The model lies at ``path``, its later files beside it."""
    record = msgspec.structs.replace(described.record, own=True)
    for file in record.files:
        place = path if len(record.files) == 1 else path.with_name(file.name)
        note_place(record.key, file.name, place, origin)
    _ROWS.put(record.key, record)
    return record


def forget_row(key: str) -> None:
    """The files stay."""
    _ROWS.put(key, None)


def refresh(table: ModelTable | None = None, found: Sequence[Found] | None = None) -> ModelTable:
    """Looks into the stores of other programs and gives the full table.

    Reads the headers of files that are new there, so call it off the event loop; hashes nothing.
    """
    table = table or builtin_table()
    found = scan_stores() if found is None else found
    for record in table.models:
        adopt_known(record, found)
    files = [file for record in table.models for file in record.files]
    for item in found:
        if item.begins_model and not any(may_be(item, file) for file in files):
            _take_found(item)
    return full_table(table)


def _take_found(found: Found) -> None:
    stamp = stamp_of(found.path)
    if stamp is None or _is_settled(_SEEN.get(stamp.text)):
        return
    try:
        described = describe(found.path, found.label)
    except (FileError, ModelError) as error:
        log.info("%s is left out: %s", found.path, error.what)
        _SEEN.put(stamp.text, "")
        return
    if not _is_settled(described.record.key):
        keep_row(described, found.path, found.origin)
    _SEEN.put(stamp.text, described.record.key)


def _is_settled(key: str | None) -> bool:
    """Whether a file that was looked at has a row, if only as the twin of another one, or cannot have one."""
    record = _ROWS.get(key) if key else None
    return key == "" or (record is not None and is_whole(record))
