"""The last room in a sealed file, written by a thread of its own, the newest state only."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from filelock import FileLock, Timeout

from app.core.files import private_folder
from app.core.paths import data_dir
from app.core.sealed import SealedFile, sealing_key
from app.core.secrets import Secrets
from app.room.saved_room import NoMemory, Remembered, Saved, decode_saved, encode_saved

log = logging.getLogger(__name__)

WALL_SKEW = 5.0
END_WITHIN = 2.0


def open_memory(secrets: Secrets) -> DiskMemory | NoMemory:
    """The last room of this computer. A second program beside the first remembers nothing: the room is not its."""
    folder = private_folder(data_dir() / "rooms")
    lock = FileLock(folder / "lock", blocking=False)
    try:
        lock.acquire()
    except (Timeout, OSError) as error:
        log.info("rooms are not kept for a restart: %s", error)
        return NoMemory()
    return DiskMemory(SealedFile(folder / "last", sealing_key(secrets)), lock)


class DiskMemory:
    """``saved_room.RoomMemory`` over a file. ``close`` waits for what is being written."""

    def __init__(self, file: SealedFile, lock: FileLock | None = None, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._lock = lock
        self._now = now
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="room writer", daemon=True)
        self._writer.start()

    def keep(self, saved: Callable[[], Saved]) -> None:
        """``saved`` is called in the writer's thread: it must only read values."""
        self._waiting.put(lambda: self._file.write(encode_saved(saved())))

    def alive(self) -> None:
        self._waiting.put(self._file.touch)

    def forget(self) -> None:
        self._waiting.put(self._file.delete)

    def last(self) -> Remembered | None:
        content = self._file.read()
        saved = decode_saved(content) if content else None
        age = self._now() - self._file.written_at
        # A clock that was set back makes no room young.
        return Remembered(saved, max(0.0, age)) if saved is not None and age > -WALL_SKEW else None

    def close(self) -> None:
        self._waiting.put(None)
        self._writer.join(END_WITHIN)
        if self._lock is not None:
            self._lock.release()

    def _write_all(self) -> None:
        while (work := self._waiting.get()) is not None:
            try:
                work()
            except (OSError, ValueError) as error:
                log.warning("the room cannot be kept for a restart: %s", error)
