"""Whose turn it is: one answer at a time in the whole room, questions and programs in one queue (spec: rooms §17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.core.errors import RoomError

MOST_WAITING = 10
MOST_PER_DEVICE = 2


class Turn(Protocol):
    """Somebody's wish for an answer. ``asker`` is a peer id."""

    @property
    def asker(self) -> str: ...

    def begin(self) -> None:
        """It is this one's turn; ``Turns.over`` ends it."""
        ...

    def waits(self, place: int) -> None:
        """1 is next."""
        ...


class Turns:
    """Oldest first. ``ready`` says whether a model can answer now; ``on_change`` hears that others wait than before."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.waiting: tuple[Turn, ...] = ()
        self._ready = ready
        self._running: Turn | None = None

    @property
    def running(self) -> Turn | None:
        return self._running

    def ask(self, turn: Turn) -> None:
        """Begins at once or waits. RoomError when the queue, or this device's share of it, is full."""
        if self._running is None and not self.waiting and self._ready():
            self.begin(turn)
            return
        if len(self.waiting) >= MOST_WAITING:
            raise RoomError("Too many questions are waiting already.", "Ask again in a moment.")
        if sum(waiting.asker == turn.asker for waiting in self.waiting) >= MOST_PER_DEVICE:
            raise RoomError("Two of your questions are waiting already.", "Wait for one to be answered.")
        self.waiting = (*self.waiting, turn)
        turn.waits(len(self.waiting))
        self.on_change()

    def begin(self, turn: Turn) -> None:
        """Before anything that waits."""
        self._running = turn
        turn.begin()

    def over(self) -> None:
        """The running answer ended."""
        self._running = None
        self.next()

    def next(self) -> None:
        """Lets the first that waits begin, if it can."""
        if self._running is not None or not self.waiting or not self._ready():
            return
        first, self.waiting = self.waiting[0], self.waiting[1:]
        self.on_change()
        for place, turn in enumerate(self.waiting, start=1):
            turn.waits(place)
        self.begin(first)

    def drop(self, unwanted: Callable[[Turn], bool]) -> tuple[Turn, ...]:
        """Takes those out that wait in vain, and returns them."""
        out = tuple(turn for turn in self.waiting if unwanted(turn))
        if out:
            self.waiting = tuple(turn for turn in self.waiting if turn not in out)
            self.on_change()
        return out
