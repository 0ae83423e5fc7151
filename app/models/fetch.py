"""A model's files onto this computer: sources tried in order, size and hash checked before a name is given."""

from __future__ import annotations

import asyncio
import shutil
import zipfile
from pathlib import Path

from app.core.errors import FileError, LinkError
from app.models.download import Tell, download
from app.models.sources import Location, locate
from app.models.store import is_whole, path_of, sha256_of
from app.models.table import ModelFile, ModelRecord


async def fetch_model(record: ModelRecord, tell: Tell) -> Path:
    """Fetches what is missing and returns the first file.

    Raises LinkError naming the last source's fault when none gives the right file, FileError for the disk.
    """
    for file in record.files:
        if not is_whole(record) and not path_of(record, file).exists():
            await _fetch_file(file, path_of(record, file), tell)
    return path_of(record, record.files[0])


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
    fetched = await download(location.url, target.with_name(name + ".download"), tell)
    if location.member:
        fetched = await asyncio.to_thread(_extract, fetched, location.member)
    await asyncio.to_thread(_check, fetched, file)
    fetched.replace(target)


def _extract(archive: Path, member: str) -> Path:
    target = archive.with_suffix(".member")
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        archive.unlink()
        raise LinkError(f"{archive.name} does not hold the model.", "Try again.") from error
    except OSError as error:
        raise FileError(f"{target.name} cannot be written: {error.strerror}.", "Make room.") from error
    archive.unlink()
    return target


def _check(path: Path, file: ModelFile) -> None:
    """A file of another size or hash is deleted: it is damaged or not the one that was meant."""
    size = path.stat().st_size
    if size == file.bytes and (not file.sha256 or sha256_of(path) == file.sha256):
        return
    path.unlink()
    raise LinkError(f"{file.name} came with {size} bytes and the wrong content.", "Try again.")
