"""One writer a model folder, also among several programs on this computer (spec: product D-005)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.core.errors import FileError

LOCK_PERIOD = 0.2
LOCK_NAME = ".lock"


@asynccontextmanager
async def alone_in(folder: Path) -> AsyncGenerator[None]:
    """Two programs on this computer must not write the same ``.part``: the second waits for the first's file."""
    lock = FileLock(folder / LOCK_NAME, blocking=False)
    while not _taken(lock, folder):  # noqa: ASYNC110 - another program sets no event
        await asyncio.sleep(LOCK_PERIOD)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def alone_now(folder: Path, label: str) -> Generator[None]:
    """As ``alone_in``, but FileError when somebody is writing there."""
    lock = FileLock(folder / LOCK_NAME, blocking=False)
    if not _taken(lock, folder):
        raise FileError(f"{label} is being fetched just now.", "Stop the download first.")
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
