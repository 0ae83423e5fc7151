"""One file over HTTP into a ``.part`` file, resumed where it stopped."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import aiohttp

from app.core.errors import FileError, LinkError
from app.models.sources import ANSWER_WITHIN

MAKE_ROOM = "Make room and start again; what is there is kept."

_CHUNK = 1 << 18
_WINDOW = 5.0
_TELL_EVERY = 0.1
_STALLED = 15.0


@dataclass(frozen=True)
class Transfer:
    """How far a download is: bytes done of ``total``, bytes a second, seconds left (None while unknown)."""

    done: int
    total: int
    speed: float
    left: float | None


Tell = Callable[[Transfer], None]


class Meter:
    """Speed over the last seconds, told at most ten times a second."""

    def __init__(self, tell: Tell, done: int, total: int) -> None:
        self._tell = tell
        self._total = total
        self._marks = deque([(time.monotonic(), done)])
        self._told = 0.0

    def add(self, done: int) -> None:
        now = time.monotonic()
        self._marks.append((now, done))
        while now - self._marks[0][0] > _WINDOW:
            self._marks.popleft()
        if now - self._told >= _TELL_EVERY or done >= self._total:
            self._told = now
            self._tell(self._transfer(now, done))

    def _transfer(self, now: float, done: int) -> Transfer:
        start, before = self._marks[0]
        speed = (done - before) / (now - start) if now > start else 0.0
        return Transfer(done, self._total, speed, (self._total - done) / speed if speed > 0 else None)


async def download(url: str, target: Path, tell: Tell, most: int) -> Path:
    """Fetches ``url`` into ``target`` through ``target.part``; a part left by an earlier try is continued.

    Raises LinkError when the source does not answer within 5 s, refuses, breaks off or sends more than ``most``
    bytes, FileError when the disk is full.
    """
    part = target.with_name(target.name + ".part")
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_WITHIN, sock_read=_STALLED)
    async with aiohttp.ClientSession(trust_env=True, timeout=timeout) as session:
        try:
            await _fetch(session, url, part, tell, most)
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or "no answer"
            raise LinkError(f"The download of {target.name} broke off: {why}.", "Try again.") from error
    part.replace(target)
    return target


async def _fetch(session: aiohttp.ClientSession, url: str, part: Path, tell: Tell, most: int) -> None:
    have = _size(part)
    # Compressed on the way, a file's bytes could not be counted.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    request = session.get(url, headers=headers)
    async with await asyncio.wait_for(request, ANSWER_WITHIN) as answer:
        if answer.status == 416 and have:
            if _total_of(answer) == have:
                return None
            _forget(part)
            return await _fetch(session, url, part, tell, most)
        start, total = _extent(answer, have)
        _check_size(total, most)
        check_space(part.parent, total - start)
        with _opened(part, fresh=not start) as stream:
            await _receive(answer, stream, _Extent(start, total, most), tell)
    return None


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _forget(part: Path) -> None:
    part.unlink()


def _extent(answer: aiohttp.ClientResponse, have: int) -> tuple[int, int]:
    """From which byte the answer goes on, and the size of the whole file."""
    if answer.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
        if match and int(match[1]) == have:
            return have, int(match[2])
        raise LinkError("The server sent another part of the file than was asked for.", "Try again.")
    if answer.status != 200:
        raise refusal(answer)
    return 0, answer.content_length or 0


def refusal(answer: aiohttp.ClientResponse) -> LinkError:
    """What a person reads when a server gave something else than the bytes asked for."""
    return LinkError(f"The server answered {answer.status} {answer.reason}.", "Try again later.")


def _total_of(answer: aiohttp.ClientResponse) -> int:
    match = re.fullmatch(r"bytes \*/(\d+)", answer.headers.get("Content-Range", ""))
    return int(match[1]) if match else -1


def check_space(folder: Path, need: int) -> None:
    """Raises FileError unless so many bytes are free on the folder's disk."""
    free = shutil.disk_usage(folder).free
    if need > free:
        raise FileError(
            f"The download needs {need / 1e9:.1f} GB, the disk has {free / 1e9:.1f} GB left.",
            MAKE_ROOM,
        )


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise LinkError(f"The server sends more than the {most} bytes that the file has.", "Try again later.")


@dataclass(frozen=True)
class _Extent:
    """From which byte an answer goes on, how many there are in all (0: not said) and at most."""

    start: int
    total: int
    most: int


async def _receive(answer: aiohttp.ClientResponse, stream: RawIOBase, extent: _Extent, tell: Tell) -> None:
    meter, done = Meter(tell, extent.start, extent.total), extent.start
    async for chunk in answer.content.iter_chunked(_CHUNK):
        done += len(chunk)
        _check_size(done, extent.most)
        await asyncio.to_thread(_append, stream, chunk)
        meter.add(done)
    if extent.total and done != extent.total:
        raise LinkError(f"The download ended at {done} of {extent.total} bytes.", "Try again.")


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


def unwritable(name: str, error: OSError) -> FileError:
    """What a person reads when the disk refused."""
    return FileError(f"{name} cannot be written: {error.strerror}.", MAKE_ROOM)
