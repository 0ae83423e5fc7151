"""A model's files onto this computer: sources tried in order, size and hash checked before a name is given."""

from __future__ import annotations

import asyncio
import shutil
import zipfile
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.core.errors import FileError, LinkError
from app.models.download import Tell, download
from app.models.sources import Location, locate
from app.models.store import folder_of, is_file_whole, path_of, sha256_of
from app.models.table import ModelFile, ModelRecord

ARCHIVE_EXTRA = 64 << 20
"""How much larger than the model the archive around it may be."""
LOCK_PERIOD = 0.2

# All that zipfile raises for a damaged archive, an encrypted one or one packed in a way it does not know.
_DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError)


async def fetch_model(record: ModelRecord, tell: Tell) -> Path:
    """Fetches what is missing and returns the first file.

    Raises LinkError naming the last source's fault when none gives the right file, FileError for the disk.
    """
    async with alone_in(folder_of(record)):
        for file in record.files:
            if not is_file_whole(record, file):
                await _fetch_file(file, path_of(record, file), tell)
    return path_of(record, record.files[0])


@asynccontextmanager
async def alone_in(folder: Path) -> AsyncGenerator[None]:
    """Two programs on this computer must not write the same ``.part``: the second waits for the first's file."""
    lock = FileLock(folder / ".lock", blocking=False)
    while not _taken(lock, folder):  # noqa: ASYNC110 - another program sets no event
        await asyncio.sleep(LOCK_PERIOD)
    try:
        yield
    finally:
        lock.release()


def _taken(lock: FileLock, folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        return False
    except OSError as error:
        raise FileError(f"{folder} cannot be written: {error.strerror}.", "Make room.") from error
    return True


async def _fetch_file(file: ModelFile, target: Path, tell: Tell) -> None:
    fault = LinkError(f"{file.name} has no source.", "Put the file there by hand.")
    for source in file.sources:
        try:
            await _fetch_from(await locate(source), file, target, tell)
            return
        except LinkError as error:
            fault = error
    raise LinkError(f"{file.name} could not be fetched. {fault.what}", fault.remedy or "Check the network.")


async def _fetch_from(location: Location, file: ModelFile, target: Path, tell: Tell) -> None:
    name = location.url.split("?")[0].rsplit("/", 1)[-1]
    most = file.bytes + (ARCHIVE_EXTRA if location.member else 0)
    fetched = await download(location.url, target.with_name(name + ".download"), tell, most)
    if location.member:
        fetched = await asyncio.to_thread(_extract, fetched, location.member, file.bytes)
    await asyncio.to_thread(_check, fetched, file)
    fetched.replace(target)


def _extract(archive: Path, member: str, size: int) -> Path:
    """The one member as a file. The archive is deleted: it is used up, or it is not what was meant."""
    target = archive.with_suffix(".member")
    try:
        with zipfile.ZipFile(archive) as opened:
            if opened.getinfo(member).file_size != size:
                raise LinkError(f"{archive.name} holds another version of the model.", "Try again later.")
            with opened.open(member) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except _DAMAGED as error:
        target.unlink(missing_ok=True)
        raise LinkError(f"{archive.name} does not hold the model.", "Try again.") from error
    except OSError as error:
        raise FileError(f"{target.name} cannot be written: {error.strerror}.", "Make room.") from error
    finally:
        archive.unlink(missing_ok=True)
    return target


def _check(path: Path, file: ModelFile) -> None:
    """A file of another size or hash is deleted: it is damaged or not the one that was meant."""
    size = path.stat().st_size
    if size == file.bytes and (not file.sha256 or sha256_of(path) == file.sha256):
        return
    path.unlink()
    raise LinkError(f"{file.name} came with {size} bytes and the wrong content.", "Try again.")
