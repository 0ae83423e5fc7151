"""Answers that cannot be written just now: the room is not whole, or others are being written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from app.core.clock import Clock
from app.core.errors import PooledError
from app.room.answering import Answering

Unwanted = Callable[[Answering, float], bool]


@dataclass(frozen=True, eq=False)
class _Waiter:
    now: Answering
    since: float
    woken: asyncio.Future[None]


class Waiters:
    """Oldest first; ``ready`` says whether one more may go on."""

    def __init__(self, ready: Callable[[], bool], clock: Clock) -> None:
        self._ready = ready
        self._clock = clock
        self._waiting: list[_Waiter] = []

    async def wait(self, now: Answering) -> None:
        """Raises the error that the wait is given up with. Whoever may go on does so before anything else happens."""
        while not self._ready():
            waiter = _Waiter(now, self._clock.now(), asyncio.get_running_loop().create_future())
            self._waiting.append(waiter)
            try:
                await waiter.woken
            finally:
                self._waiting.remove(waiter)

    def wake(self) -> None:
        """Each looks again whether it may go on."""
        for waiter in self._waiting:
            if not waiter.woken.done():
                waiter.woken.set_result(None)

    def fail(self, error: PooledError, unwanted: Unwanted = lambda _now, _since: True) -> None:
        """Gives up waits, all of them or those of certain answers that wait since certain moments."""
        for waiter in self._waiting:
            if not waiter.woken.done() and unwanted(waiter.now, waiter.since):
                waiter.woken.set_exception(error)
