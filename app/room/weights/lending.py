"""Ranges given to other devices by control messages (spec: rooms §6.3, §13.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from app.core.clock import Clock
from app.core.errors import FileError
from app.models import stock
from app.models.ranges import Span, pieces
from app.models.table import Models
from app.room import messages as m
from app.room.ports import Link
from app.room.tasks import Tasks
from app.room.weights.asking import IDLE, PART, WINDOW
from app.room.weights.names import find
from app.room.weights.pacer import Pacer

MOST_QUEUED = 4 << 20
"""Bytes of control messages that may wait in a channel."""
MOST_LOANS = 8
_READ = 1 << 20
_LOOK_AGAIN = 0.01


class _Over(Exception):
    """The asker is gone or wants no more."""


@dataclass
class _Loan:
    """A range that is being sent. ``window`` 0: without acknowledgements."""

    id: str
    link: Link
    window: int
    heard: float
    sent: int = 0
    got: int = 0
    over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def full(self) -> bool:
        return self.window > 0 and self.sent + PART > self.got + self.window

    def end(self) -> None:
        self.over = True
        self.news.set()


class Lending:
    """All ranges that others fetch here. ``queued`` tells how much waits in a link's channel."""

    def __init__(self, table: Models, clock: Clock, pacer: Pacer, queued: Callable[[Link], int]) -> None:
        self._table = table
        self._clock = clock
        self._pacer = pacer
        self._queued = queued
        self._tasks = Tasks()
        self._loans: dict[tuple[str, str], _Loan] = {}

    def asked(self, link: Link, request: m.WeightRequest) -> None:
        """Sends the range, or that it is not here."""
        key = link.peer_id, request.id
        theirs = sum(1 for peer, _id in self._loans if peer == link.peer_id)
        found = find(self._table, request.url)
        if key in self._loans:
            return
        if found is None or not request.lo <= request.hi < found[1].bytes or theirs >= MOST_LOANS:
            self.miss(link, request)
            return
        window = min(max(request.win, PART), WINDOW) if request.win else 0
        loan = self._loans[key] = _Loan(request.id, link, window, self._clock.now())
        span = Span(request.lo, request.hi + 1)
        self._tasks.start(self._lend(loan, lambda piece: stock.read(*found, piece), span), f"lend {span.text}")

    @staticmethod
    def miss(link: Link, request: m.WeightRequest) -> None:
        link.send(m.encode(m.WeightPart(request.id, miss=True)))

    def acked(self, link: Link, ack: m.WeightAck) -> None:
        loan = self._loans.get((link.peer_id, ack.id))
        if loan is None or loan.link is not link:
            return
        loan.heard = self._clock.now()
        loan.got = max(loan.got, min(ack.got or 0, loan.sent))
        loan.over = loan.over or ack.cancel
        loan.news.set()

    async def _lend(self, loan: _Loan, read: Callable[[Span], bytes], span: Span) -> None:
        try:
            for piece in pieces([span], _READ):
                await self._send(loan, await asyncio.to_thread(read, piece))
            loan.link.send(m.encode(m.WeightPart(loan.id, done=True)))
        except FileError:
            loan.link.send(m.encode(m.WeightPart(loan.id, miss=True)))
        except _Over:
            pass
        finally:
            del self._loans[loan.link.peer_id, loan.id]

    async def _send(self, loan: _Loan, data: bytes) -> None:
        for start in range(0, len(data), PART):
            part = data[start : start + PART]
            await self._room(loan)
            await asyncio.sleep(self._pacer.delay(len(part)))
            loan.link.send(m.encode(m.WeightPart(loan.id, loan.sent, part)))
            loan.sent += len(part)

    async def _room(self, loan: _Loan) -> None:
        """Waits until another part may be on its way."""
        while loan.full and not loan.over:
            loan.news.clear()
            await loan.news.wait()
        while self._queued(loan.link) > MOST_QUEUED and not loan.over and loan.link.open:  # noqa: ASYNC110 - a channel sets no event
            await asyncio.sleep(_LOOK_AGAIN)
        if loan.over or not loan.link.open:
            raise _Over

    def tick(self) -> None:
        for loan in self._loans.values():
            if loan.full and self._clock.now() - loan.heard >= IDLE:
                loan.end()

    def link_closed(self, peer_id: str) -> None:
        for loan in self._loans.values():
            if loan.link.peer_id == peer_id:
                loan.end()

    async def close(self) -> None:
        await self._tasks.close()
