"""Questions waiting their turn (spec: rooms §17)."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import RoomError
from app.prompt.chat import Style

MOST_WAITING = 10
MOST_PER_DEVICE = 2


@dataclass(frozen=True)
class Question:
    """One question. ``asker`` is a peer id; ``mid`` names the exchange in the whole room.

    ``seed`` draws the answer's words. ``style`` None: the room's.
    """

    asker: str
    name: str
    text: str
    mid: str
    seed: int = 0
    style: Style | None = None


@dataclass(frozen=True)
class AskQueue:
    """Oldest first."""

    waiting: tuple[Question, ...] = ()

    def __len__(self) -> int:
        return len(self.waiting)

    def push(self, question: Question) -> AskQueue:
        """RoomError when the queue, or this device's share of it, is full."""
        if len(self.waiting) >= MOST_WAITING:
            raise RoomError("Too many questions are waiting already.", "Ask again in a moment.")
        if sum(waiting.asker == question.asker for waiting in self.waiting) >= MOST_PER_DEVICE:
            raise RoomError("Two of your questions are waiting already.", "Wait for one to be answered.")
        return AskQueue((*self.waiting, question))

    def pop(self) -> tuple[Question | None, AskQueue]:
        if not self.waiting:
            return None, self
        return self.waiting[0], AskQueue(self.waiting[1:])

    def without(self, asker: str) -> AskQueue:
        """Questions of a device that left are not asked."""
        return AskQueue(tuple(waiting for waiting in self.waiting if waiting.asker != asker))
