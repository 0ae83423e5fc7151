"""Requests wait here, in their order: the room is asked one more when the answer before has begun.

So the room has at most one that waits of this device, and itself decides how many it writes at a time
(spec: product A-003).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.serve.errors import queue_full


class Line:
    """``most_waiting`` may wait beside those that are answered; 0 takes a request only when idle."""

    def __init__(self, most_waiting: int, on_begun: Callable[[], None] = lambda: None) -> None:
        self._on_begun = on_begun
        self._most_waiting = most_waiting
        self._waiting: list[Ticket] = []
        self._begun: list[Ticket] = []

    @property
    def waiting(self) -> int:
        """Behind others; the first of an idle room does not count."""
        return len(self._waiting) if self._begun else max(0, len(self._waiting) - 1)

    def enter(self) -> Ticket:
        """Raises ApiError when the line is full. The ticket must ``leave``."""
        if (self._waiting or self._begun) and self.waiting >= self._most_waiting:
            raise queue_full()
        ticket = Ticket(self)
        self._waiting.append(ticket)
        self._advance()
        return ticket

    def ahead_of(self, ticket: Ticket) -> int:
        return self._waiting.index(ticket) if ticket in self._waiting else 0

    def begun(self, ticket: Ticket) -> None:
        """Its answer is being written; whoever is next may ask."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            self._begun.append(ticket)
            self._advance()
            self._on_begun()

    def drop(self, ticket: Ticket) -> None:
        self._waiting = [other for other in self._waiting if other is not ticket]
        self._begun = [other for other in self._begun if other is not ticket]
        self._advance()

    def _advance(self) -> None:
        if self._waiting:
            self._waiting[0].turn.set()


class Ticket:
    """A place in the line; ``turn`` is set when the room may be asked."""

    def __init__(self, line: Line) -> None:
        self.turn = asyncio.Event()
        self._line = line

    @property
    def ahead(self) -> int:
        return self._line.ahead_of(self)

    def begun(self) -> None:
        self._line.begun(self)

    def leave(self) -> None:
        self._line.drop(self)
