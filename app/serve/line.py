"""Requests wait here, in their order, so that one ask at a time goes to the room (spec: product A-003)."""

from __future__ import annotations

import asyncio
from collections import deque

from app.serve.errors import queue_full


class Line:
    """``most_waiting`` may wait behind the one whose turn it is; 0 takes a request only when idle."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._tickets: deque[Ticket] = deque()

    @property
    def waiting(self) -> int:
        return max(0, len(self._tickets) - 1)

    def enter(self) -> Ticket:
        """Raises ApiError when the line is full. The ticket must ``leave``."""
        if len(self._tickets) > self._most_waiting:
            raise queue_full()
        ticket = Ticket(self)
        self._tickets.append(ticket)
        self.advance()
        return ticket

    def ahead_of(self, ticket: Ticket) -> int:
        return self._tickets.index(ticket) if ticket in self._tickets else 0

    def drop(self, ticket: Ticket) -> None:
        if ticket in self._tickets:
            self._tickets.remove(ticket)
        self.advance()

    def advance(self) -> None:
        if self._tickets:
            self._tickets[0].turn.set()


class Ticket:
    """A place in the line; ``turn`` is set when it is first."""

    def __init__(self, line: Line) -> None:
        self.turn = asyncio.Event()
        self._line = line

    @property
    def ahead(self) -> int:
        return self._line.ahead_of(self)

    def leave(self) -> None:
        self._line.drop(self)
