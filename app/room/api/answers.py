"""The room as this device's programs see it, whichever seat the device has in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from app.prompt.ask import Ask
from app.room.api.events import AskEvent, AskRefused, AskStream, Refusal, Refused, ServedModel
from app.room.model_side import ModelSide

NO_ROOM = "This program is in no room. Open or join one first."


@dataclass(frozen=True)
class RoomAnswers:
    """``events.Answers``. ``side`` is None outside of a room."""

    side: Callable[[], ModelSide | None]
    code: Callable[[], str]

    @property
    def model(self) -> ServedModel | None:
        side = self.side()
        return side.served if side is not None else None

    @property
    def room(self) -> str:
        return self.code()

    def ask(self, ask: Ask) -> AskStream:
        side = self.side()
        return side.asks.ask(ask) if side is not None else _NoRoom()

    async def count(self, ask: Ask) -> int:
        side = self.side()
        if side is None:
            raise AskRefused(Refused(Refusal.GONE, NO_ROOM))
        return await side.asks.count(ask)


class _NoRoom:
    async def __aiter__(self) -> AsyncIterator[AskEvent]:
        yield Refused(Refusal.GONE, NO_ROOM)

    def close(self) -> None:
        """Nothing was begun."""
