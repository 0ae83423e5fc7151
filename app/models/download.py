"""One file over HTTP into a ``.part`` file, resumed where it stopped: for archives, and servers without ranges."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import aiohttp

from app.core.errors import LinkError
from app.core.files import read_start, write_whole
from app.models.client import Client
from app.models.disk import check_space, unwritable
from app.models.refusals import refusal
from app.models.sources import Location
from app.models.transfer import Meter, Tell, Transfer
from app.models.versions import version_of

__all__ = ["Tell", "Transfer", "download"]

_CHUNK = 1 << 18
_LONGEST_NOTE = 1024


async def download(client: Client, location: Location, target: Path, tell: Tell, most: int) -> Path:
    """Fetches a file into ``target`` through ``target.part``; a part left by an earlier try is continued.

    Raises LinkError when the source does not answer within 5 s, refuses, breaks off or sends more than ``most``
    bytes, FileError when the disk is full.
    """
    part = target.with_name(target.name + ".part")
    await _fetch(client, location, part, tell, most)
    part.replace(target)
    _note_of(part).unlink(missing_ok=True)
    return target


async def _fetch(client: Client, location: Location, part: Path, tell: Tell, most: int) -> None:
    have = _size(part)
    async with client.get(location, part.stem, _asked(part, have)) as answer:
        if answer.status == 416 and have:
            if _total_of(answer) == have:
                return None
            forget_part(part)
            return await _fetch(client, location, part, tell, most)
        start, total = _extent(answer, have)
        _check_size(part, total, most)
        check_space(part.parent, total - start)
        with _opened(part, fresh=not start) as stream:
            _write_note(part, version_of(answer))
            await _receive(answer, stream, part, _Extent(start, total, most), tell)
    return None


def _asked(part: Path, have: int) -> dict[str, str]:
    """From where on; a file that changed meanwhile is asked for whole (RFC 9110 §13.1.5)."""
    version = _read_note(part) if have else ""
    return ({"Range": f"bytes={have}-"} if have else {}) | ({"If-Range": version} if version else {})


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def forget_part(part: Path) -> None:
    """Deletes a part and the note of its version."""
    part.unlink(missing_ok=True)
    _note_of(part).unlink(missing_ok=True)


def _note_of(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _read_note(part: Path) -> str:
    try:
        version = read_start(_note_of(part), _LONGEST_NOTE).decode()
    except (OSError, UnicodeDecodeError):
        return ""
    return version if version.isprintable() else ""


def _write_note(part: Path, version: str) -> None:
    if version == _read_note(part):
        return
    try:
        write_whole(_note_of(part), version.encode())
    except OSError as error:
        raise unwritable(part.name, error) from error


def _extent(answer: aiohttp.ClientResponse, have: int) -> tuple[int, int]:
    """From which byte the answer goes on, and the size of the whole file."""
    if answer.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
        if match and int(match[1]) == have:
            return have, int(match[2])
        raise LinkError("The server sent another part of the file than was asked for.", "Try again.")
    if answer.status != 200:
        raise refusal(answer.status, answer.headers)
    return 0, answer.content_length or 0


def _total_of(answer: aiohttp.ClientResponse) -> int:
    match = re.fullmatch(r"bytes \*/(\d+)", answer.headers.get("Content-Range", ""))
    return int(match[1]) if match else -1


def _check_size(part: Path, size: int, most: int) -> None:
    """A longer file is another one: nothing of it is kept."""
    if size > most:
        forget_part(part)
        raise LinkError(f"The server sends more than the {most} bytes that the file has.", "Try again later.")


@dataclass(frozen=True)
class _Extent:
    """From which byte an answer goes on, how many there are in all (0: not said) and at most."""

    start: int
    total: int
    most: int


async def _receive(answer: aiohttp.ClientResponse, stream: RawIOBase, part: Path, extent: _Extent, tell: Tell) -> None:
    meter, done = Meter(tell, extent.start, extent.total), extent.start
    async for chunk in answer.content.iter_chunked(_CHUNK):
        done += len(chunk)
        _check_size(part, done, extent.most)
        await asyncio.to_thread(_append, stream, chunk)
        meter.add(done)
    if extent.total and done != extent.total:
        raise LinkError(f"The download ended at {done} of {extent.total} bytes.", "Try again.")
    await asyncio.to_thread(_flush, stream)


@contextmanager
def _opened(part: Path, *, fresh: bool) -> Generator[RawIOBase]:
    """Without a buffer: a full disk is met at a write, never at the close."""
    try:
        stream = part.open("wb" if fresh else "ab", buffering=0)
    except OSError as error:
        raise unwritable(part.name, error) from error
    with stream:
        yield stream


def _append(stream: RawIOBase, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        try:
            rest = rest[stream.write(rest) or 0 :]
        except OSError as error:
            raise unwritable("The download", error) from error


def _flush(stream: RawIOBase) -> None:
    try:
        os.fsync(stream.fileno())
    except OSError as error:
        raise unwritable("The download", error) from error
