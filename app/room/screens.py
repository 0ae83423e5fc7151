"""Answers on every screen: their text to those who may read it, to the others only that there is one.

The protocol has no name for whose word a word is, so screens are shown one answer at a time: a person's at once, a
program's that was written beside another one when that one is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.room import messages as m
from app.room.crowd import Crowd, tell_one
from app.room.settings import RoomSettings, may_read

PIECE = 2_000
MOST_BEHIND = 64
"""Answers that are over and were not shown yet."""


class Shown:
    """One answer on its way to the screens, with all that is known of it."""

    def __init__(self, screens: Screens, start: m.AnswerStart, asker: str) -> None:
        self.start = start
        self.asker = asker
        self.text = ""
        self.done: m.AnswerDone | None = None
        self._screens = screens

    @property
    def rank(self) -> tuple[bool, bool]:
        """Lowest first: a person's, then what is over, for whatever is being written stays as long as it takes."""
        return bool(self.start.api), self.done is None

    def say(self, text: str, source: int = 0) -> None:
        """``source`` as ``Token.d``."""
        self.text += text
        if self._screens.shows(self):
            for piece in pieces(text, source):
                self._screens.tell(piece, self.asker)

    def end(self, done: m.AnswerDone) -> None:
        self.done = done
        self._screens.ended(self)


class Screens:
    """Everybody in the room but programs, which hear their own answers only."""

    def __init__(self, crowd: Crowd, settings: Callable[[], RoomSettings]) -> None:
        self._crowd = crowd
        self._settings = settings
        self._now: Shown | None = None
        self._behind: list[Shown] = []

    def reads(self, reader: str, asker: str) -> bool:
        """Whether ``reader`` gets the text of an answer to ``asker``; both are peer ids."""
        return may_read(self._settings().visibility, reader=reader, owner=self._crowd.creator, asker=asker)

    def begin(self, start: m.AnswerStart, asker: str) -> Shown:
        """A person's answer takes the place of a program's, which comes again after it."""
        shown = Shown(self, start, asker)
        if not start.api and self._now is not None:
            self.tell(m.AnswerDone(api=self._now.start.api), self._now.asker)
            self._behind.append(self._now)
            self._now = None
        self._behind.append(shown)
        self._fill()
        return shown

    def shows(self, shown: Shown | None) -> bool:
        """Whether it is the one that screens show being written."""
        return shown is not None and shown is self._now

    def ended(self, shown: Shown) -> None:
        if self.shows(shown) and shown.done is not None:
            self.tell(shown.done, shown.asker)
            self._now = None
        over = [other for other in self._behind if other.done is not None]
        for oldest in over[:-MOST_BEHIND]:
            self._behind.remove(oldest)
        self._fill()

    def _fill(self) -> None:
        while self._now is None and self._behind:
            first = min(self._behind, key=lambda shown: shown.rank)
            self._behind.remove(first)
            self._show(first)

    def _show(self, shown: Shown) -> None:
        self._now = shown
        self.tell(shown.start, shown.asker)
        for piece in pieces(shown.text):
            self.tell(piece, shown.asker)
        if shown.done is not None:
            self.tell(shown.done, shown.asker)
            self._now = None

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
