"""Whose turn it is: as many answers as the devices have room for, questions and programs in one queue.

Spec: rooms §17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.core.errors import RoomError

MOST_WAITING = 10
MOST_PROGRAMS = 8
"""Programs that wait: the other places are people's."""
MOST_PER_DEVICE = 2


class Turn(Protocol):
    """Somebody's wish for an answer. ``asker`` is a peer id; people have one conversation, each program its own."""

    @property
    def asker(self) -> str: ...

    @property
    def person(self) -> bool: ...

    def begin(self) -> None:
        """It is this one's turn; ``Turns.over`` ends it."""
        ...

    def waits(self, place: int) -> None:
        """1 is next."""
        ...


class Turns:
    """Whoever may begin does, oldest first: at most ``most`` at a time, and one person's.

    ``ready`` says whether a model can answer now; ``on_change`` hears that others wait than before.
    """

    def __init__(self, ready: Callable[[], bool], most: Callable[[], int] = lambda: 1) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.waiting: tuple[Turn, ...] = ()
        self.running: tuple[Turn, ...] = ()
        self._ready = ready
        self._most = most

    @property
    def person_runs(self) -> bool:
        return any(turn.person for turn in self.running)

    def ask(self, turn: Turn) -> None:
        """Begins at once or waits. RoomError when the queue, or this device's share of it, is full."""
        if self._first(*self.waiting, turn) is turn:
            self.begin(turn)
            return
        programs = sum(not waiting.person for waiting in self.waiting)
        if len(self.waiting) >= MOST_WAITING or (not turn.person and programs >= MOST_PROGRAMS):
            raise RoomError("Too many questions are waiting already.", "Ask again in a moment.")
        if sum(waiting.asker == turn.asker for waiting in self.waiting) >= MOST_PER_DEVICE:
            raise RoomError("Two of your questions are waiting already.", "Wait for one to be answered.")
        self.waiting = (*self.waiting, turn)
        turn.waits(len(self.waiting))
        self.on_change()

    def _first(self, *turns: Turn) -> Turn | None:
        """The oldest that may begin now; a person who waits for the people's running answer holds back nobody else."""
        if not self._ready() or len(self.running) >= self._most():
            return None
        return next((turn for turn in turns if not (turn.person and self.person_runs)), None)

    def first(self, turn: Turn) -> None:
        """Before anything that waits: at once, or as soon as there is room."""
        self.waiting = (turn, *self.waiting)
        self.next()
        if turn in self.waiting:
            self._changed()

    def begin(self, turn: Turn) -> None:
        self.running = (*self.running, turn)
        turn.begin()

    def _changed(self) -> None:
        """Who waits hears where."""
        self.on_change()
        for place, turn in enumerate(self.waiting, start=1):
            turn.waits(place)

    def over(self, turn: Turn) -> None:
        """A running answer ended."""
        self.running = tuple(other for other in self.running if other is not turn)
        self.next()

    def next(self) -> None:
        """Lets those that wait begin, as many as can."""
        while (first := self._first(*self.waiting)) is not None:
            self.waiting = tuple(turn for turn in self.waiting if turn is not first)
            self._changed()
            self.begin(first)

    def drop(self, unwanted: Callable[[Turn], bool]) -> tuple[Turn, ...]:
        """Takes those out that wait in vain, and returns them."""
        out = tuple(turn for turn in self.waiting if unwanted(turn))
        if out:
            self.waiting = tuple(turn for turn in self.waiting if turn not in out)
            self._changed()
        return out
