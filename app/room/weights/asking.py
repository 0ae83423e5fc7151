"""Ranges asked of another device by control messages (spec: rooms §6.3, §13.4)."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque

from app.core.clock import Clock
from app.core.errors import LinkError
from app.models.gather import Put
from app.models.ranges import Span
from app.room import messages as m
from app.room.ports import Link

PART = 64 << 10
WINDOW = 8 << 20
ACK_EVERY = 1 << 20
IDLE = 15.0


class _Ask:
    """One range on its way: what came and was not used yet, or why nothing more will."""

    def __init__(self, id: str, link: Link, span: Span, now: float) -> None:
        self.id, self.link = id, link
        self.used = 0
        self.heard = now
        self._span = span
        self._base: int | None = None
        self._came = 0
        self._acked = 0
        self._parts: deque[bytes] = deque()
        self._done = False
        self._fault = ""
        self._news = asyncio.Event()

    def take(self, part: m.WeightPart, now: float) -> None:
        self.heard = now
        if part.miss:
            self.fail("does not have it any more")
        elif part.done:
            self._done = True
            self._news.set()
        elif part.data and part.off is not None and self._fits(part.off, len(part.data)):
            self._came += len(part.data)
            self._parts.append(part.data)
            self._news.set()
        else:
            self.fail("sent something else than was asked for")

    def _fits(self, off: int, size: int) -> bool:
        """In order, within the range and the window. Offsets count from the range's start, or from the file's."""
        if self._base is None and off in (0, self._span.lo):
            self._base = off
        in_order = self._base is not None and off == self._base + self._came and not self._done
        end = self._came + size
        return in_order and size <= PART and end <= min(self._span.size, self._acked + WINDOW)

    def fail(self, why: str) -> None:
        self._fault = self._fault or why
        self._news.set()

    @property
    def waits(self) -> bool:
        return not self._parts and not self._fault

    async def next(self) -> bytes:
        """What came meanwhile; b"" at the end. Raises LinkError."""
        while self.waits and not self._done:
            self._news.clear()
            await self._news.wait()
        if self._fault or (not self._parts and self._came != self._span.size):
            raise LinkError(f"Another device {self._fault or 'sent less than was asked for'}.")
        data = b"".join(self._parts)
        self._parts.clear()
        return data

    def count(self, used: int) -> bool:
        """Notes that bytes were used; whether it is time to say so."""
        self.used += used
        if self.used - self._acked < ACK_EVERY and self.used < self._span.size:
            return False
        self._acked = self.used
        return True


class Asking:
    """All ranges this device has asked for."""

    def __init__(self, me: str, clock: Clock) -> None:
        self._me = me
        self._clock = clock
        self._numbers = itertools.count(1)
        self._asks: dict[str, _Ask] = {}

    async def fetch(self, link: Link, url: str, span: Span, put: Put) -> None:
        """Gives the range to ``put``; LinkError when the device does not have it, goes silent, or sends other bytes."""
        ask = _Ask(f"{self._me}:{next(self._numbers)}", link, span, self._clock.now())
        self._asks[ask.id] = ask
        link.send(m.encode(m.WeightRequest(ask.id, url, span.lo, span.hi - 1, WINDOW)))
        try:
            await self._use(ask, put)
        except BaseException:
            link.send(m.encode(m.WeightAck(ask.id, cancel=True)))
            raise
        finally:
            del self._asks[ask.id]

    async def _use(self, ask: _Ask, put: Put) -> None:
        while data := await ask.next():
            await asyncio.to_thread(put, data)
            ask.heard = self._clock.now()
            if ask.count(len(data)):
                ask.link.send(m.encode(m.WeightAck(ask.id, got=ask.used)))

    def part(self, link: Link, part: m.WeightPart) -> None:
        ask = self._asks.get(part.id)
        if ask is not None and ask.link is link:
            ask.take(part, self._clock.now())

    def tick(self) -> None:
        for ask in self._asks.values():
            if ask.waits and self._clock.now() - ask.heard >= IDLE:
                ask.fail("stopped sending")

    def link_closed(self, peer_id: str) -> None:
        for ask in self._asks.values():
            if ask.link.peer_id == peer_id:
                ask.fail("is gone")
