"""Waiting no longer than a clock says that is told by ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from app.core.clock import Clock
from app.core.errors import LinkError

T = TypeVar("T")


class Deadlines:
    """``within`` gives up at the first ``tick`` after its time is over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[asyncio.Future[object], float] = {}
        self._over: set[asyncio.Future[object]] = set()

    async def within(self, seconds: float, work: Awaitable[T], what: str) -> T:
        """The result of ``work``; LinkError saying ``what`` when it takes longer, and the work is cancelled."""
        future: asyncio.Future[T] = asyncio.ensure_future(work)
        self._until[future] = self._clock.now() + seconds  # pyright: ignore[reportArgumentType]
        try:
            return await future
        except asyncio.CancelledError:
            if future in self._over:
                raise LinkError(what) from None
            raise
        finally:
            self._until.pop(future, None)  # pyright: ignore[reportArgumentType, reportCallIssue]
            self._over.discard(future)  # pyright: ignore[reportArgumentType]

    def tick(self) -> None:
        now = self._clock.now()
        for future in [f for f, until in self._until.items() if until <= now]:
            self._over.add(future)
            future.cancel()


class Replies:
    """Answers by key. What nobody waits for is dropped."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._waiting: dict[tuple[str, str], asyncio.Future[object]] = {}

    async def wait(self, peer_id: str, key: str, seconds: float) -> object:
        """What ``peer_id`` answers; LinkError when it does not in time, or its link ends."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[peer_id, key] = future
        try:
            return await self._deadlines.within(seconds, future, "The other device did not answer.")
        finally:
            if self._waiting.get((peer_id, key)) is future:
                del self._waiting[peer_id, key]

    def give(self, peer_id: str, key: str, answer: object) -> None:
        future = self._waiting.get((peer_id, key))
        if future is not None and not future.done():
            future.set_result(answer)

    def link_closed(self, peer_id: str) -> None:
        for (peer, _key), future in list(self._waiting.items()):
            if peer == peer_id and not future.done():
                future.set_exception(LinkError("The other device is gone."))
