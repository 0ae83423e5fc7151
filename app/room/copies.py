"""One room's copies of computed states on this device's disk, written and read off the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from app.core.errors import PooledError
from app.engine.checkpoints import CheckpointStore, Copy, CopyKey
from app.room.ports import Compute, State
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

T = TypeVar("T")


class Copies(Protocol):
    """Copies by name, for the engine whose signature is given. Nothing here raises: what fails is missing."""

    @property
    def kept(self) -> bool:
        """False where nothing is ever written."""
        ...

    async def write(self, signature: str, name: str, state: State, note: bytes = b"", ids_hash: str = "") -> bool: ...

    async def read(self, signature: str, name: str) -> Copy | None: ...

    async def names(self, signature: str) -> list[str]:
        """Newest first."""
        ...

    async def drop(self, signature: str, name: str) -> None: ...

    async def drop_all(self) -> None:
        """Everything of the room, whatever engine made it."""
        ...


async def start_copy(
    compute: Compute, copies: Copies, tasks: Tasks, slot: int, note: bytes = b"", ids_hash: str = "", sequence: int = 0
) -> None:
    """The bytes are taken now, before the sequence goes on; the disk's work goes on beside."""
    try:
        state = await compute.export(sequence)
    except PooledError as error:
        log.warning("a conversation cannot be copied to the disk: %s", error)
        return
    signature = compute.signature

    async def write() -> None:
        await copies.write(signature, str(slot), state, note, ids_hash)

    tasks.start(write(), "write checkpoint")


class DiskCopies:
    """Makes each room's ``Copies``; one thread does all the work, so that it happens in the order asked for."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")

    def of(self, room: str) -> Copies:
        return _RoomCopies(room, self._store, self._thread)

    async def close(self) -> None:
        """Waits for what is being written."""
        await asyncio.to_thread(self._thread.shutdown)


@dataclass(frozen=True)
class _RoomCopies:
    room: str
    store: CheckpointStore
    thread: ThreadPoolExecutor
    kept: bool = True

    async def write(self, signature: str, name: str, state: State, note: bytes = b"", ids_hash: str = "") -> bool:
        copy = Copy(state.end, state.data, note, ids_hash)
        return await self._call(lambda: self.store.write(self._key(signature, name), copy))

    async def read(self, signature: str, name: str) -> Copy | None:
        return await self._call(lambda: self.store.read(self._key(signature, name)))

    async def names(self, signature: str) -> list[str]:
        return await self._call(lambda: self.store.names(self.room, signature))

    async def drop(self, signature: str, name: str) -> None:
        await self._call(lambda: self.store.drop(self._key(signature, name)))

    async def drop_all(self) -> None:
        await self._call(lambda: self.store.drop_room(self.room))

    def _key(self, signature: str, name: str) -> CopyKey:
        return CopyKey(self.room, name, signature)

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)


class NoCopies:
    """A device that keeps nothing on disk."""

    kept = False

    async def write(self, signature: str, name: str, state: State, note: bytes = b"", ids_hash: str = "") -> bool:
        return False

    async def read(self, signature: str, name: str) -> Copy | None:
        return None

    async def names(self, signature: str) -> list[str]:
        return []

    async def drop(self, signature: str, name: str) -> None: ...

    async def drop_all(self) -> None: ...
