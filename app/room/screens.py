"""An answer on every screen: its text to those who may read it, to the others only that there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.room import messages as m
from app.room.crowd import Crowd, tell_one
from app.room.settings import RoomSettings, may_read

PIECE = 2_000


class Screens:
    """Everybody in the room but programs, which hear their own answers only."""

    def __init__(self, crowd: Crowd, settings: Callable[[], RoomSettings]) -> None:
        self._crowd = crowd
        self._settings = settings

    def reads(self, reader: str, asker: str) -> bool:
        """Whether ``reader`` gets the text of an answer to ``asker``; both are peer ids."""
        return may_read(self._settings().visibility, reader=reader, owner=self._crowd.creator, asker=asker)

    def tell(self, message: m.AnswerStart | m.Token | m.AnswerDone, asker: str) -> None:
        hidden = _hidden(message)
        for member in self._crowd.members:
            told = message if self.reads(member.id, asker) else hidden
            if told is not None and not member.meta.is_api:
                tell_one(self._crowd, member.id, told)


def pieces(text: str, source: int = 0) -> Iterator[m.Token]:
    """A text of any length as messages; ``source`` as ``Token.d``."""
    return (m.Token(text=piece, d=source) for piece in m.in_lines(text, PIECE))


def _hidden(message: m.AnswerStart | m.Token | m.AnswerDone) -> m.Message | None:
    match message:
        case m.AnswerStart():
            return m.AnswerStart(
                name=message.name, asker=message.asker, mid=message.mid, hidden=True, api=message.api,
                client=message.client,
            )  # fmt: skip
        case m.AnswerDone():
            return m.AnswerDone(
                stats=message.stats,
                ctx=message.ctx,
                failed=message.failed,
                capped=message.capped,
                hidden=True,
                api=message.api,
            )
        case m.Token():
            return None
