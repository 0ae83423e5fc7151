"""The last step of every download: the hash is checked before a file gets its name."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import LinkError
from app.core.files import write_whole
from app.models.disk import unwritable
from app.models.download import forget_part
from app.models.gather import Came, Gathering
from app.models.hashing import sha256_of
from app.models.kept import stamp_of
from app.models.partial import forget
from app.models.places import Origin
from app.models.ranges import Span
from app.models.store import begun_downloads, folder_of, home_of, partial_of
from app.models.table import ModelFile, ModelRecord
from app.models.transfer import Tell

_LENT_MARK = ".from-room"


async def check_gathered(gathering: Gathering, came: Came, tell: Tell) -> None:
    """With a wrong hash, what other devices gave is fetched from the source; without such, all is thrown away."""
    if await _is_right(gathering, tell):
        return
    if gathering.partial.lent.spans:
        await asyncio.to_thread(gathering.partial.doubt_lent)
        await gathering.fill_from_source([Span(0, gathering.partial.size)], came)
        if await _is_right(gathering, tell):
            return
    forget(gathering.partial.path)
    raise wrong_content(gathering.file)


async def _is_right(gathering: Gathering, tell: Tell) -> bool:
    expected = gathering.file.sha256
    return not expected or await sha256_of(gathering.partial.path, tell) == expected


async def check_file(path: Path, file: ModelFile, tell: Tell) -> None:
    """A file of another size or hash is deleted: it is damaged or not the one that was meant."""
    stamp = await asyncio.to_thread(stamp_of, path)
    if stamp and stamp.bytes == file.bytes and (not file.sha256 or await sha256_of(path, tell) == file.sha256):
        return
    await asyncio.to_thread(path.unlink)
    raise wrong_content(file)


def wrong_content(file: ModelFile) -> LinkError:
    return LinkError(f"{file.name} came with the wrong content and was deleted.", "Try again.")


def name_gathered(record: ModelRecord, gathering: Gathering) -> Path:
    """Gives a checked file its name and forgets what helped to fetch it; FileError when the disk refuses."""
    target = home_of(record, gathering.file)
    with _named(gathering.file):
        if gathering.partial.lent.spans:
            write_whole(folder_of(record) / _LENT_MARK, b"")
        gathering.partial.move_to(target)
        for begun in begun_downloads(record, gathering.file):
            forget_part(begun)
    return target


def name_fetched(record: ModelRecord, file: ModelFile, fetched: Path) -> None:
    """As ``name_gathered``, for a file that came in one piece."""
    with _named(file):
        fetched.replace(home_of(record, file))
        forget(partial_of(record, file))


@contextmanager
def _named(file: ModelFile) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(file.name, error) from error


def fetched_from(record: ModelRecord) -> Origin:
    """Whether a fetched model, or a part of it, came from other devices."""
    return Origin.ROOM if (folder_of(record) / _LENT_MARK).exists() else Origin.FETCHED
