"""Named background tasks that end with their owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)


class Tasks:
    """Keeps tasks alive, logs what they die of, cancels them all on ``close``."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(
        self,
        work: Coroutine[object, object, None],
        name: str,
        failed: Callable[[BaseException], None] | None = None,
    ) -> asyncio.Task[None]:
        """``failed`` hears of an error that ended the work, after it was logged."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(lambda done: self._ended(done, failed))
        return task

    def _ended(self, task: asyncio.Task[None], failed: Callable[[BaseException], None] | None) -> None:
        self._running.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("%s ended with an error", task.get_name(), exc_info=error)
        if failed is not None:
            failed(error)

    async def close(self) -> None:
        """Cancels what still runs and waits for it, but for the task that calls this."""
        current = asyncio.current_task()
        others = [task for task in self._running if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
