"""One answer of a room, written while it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.cli.printer import QUIET, Printer
from app.cli.text import safe
from app.prompt.pieces import Piece, Reasoning, Words
from app.room.api.events import AskEvent, AskStream, Ended, Queued, Reason, Refused, Spoken, Started, Usage
from app.room.codes import format_code


@dataclass(frozen=True)
class Answered:
    """``text`` without reasoning. ``wrong`` says why it is not whole; ``stopped``: by the person."""

    text: str
    wrong: str = ""
    stopped: bool = False


_CUT = {
    Reason.MOST_TOKENS: "Cut at the longest answer allowed; --max-tokens allows more.",
    Reason.CONTEXT: "Cut: the model's context is full. /clear starts anew.",
}


class AnswerWriter:
    """``words`` gets what the model says to the person, ``aside`` all else; they may be the same printer."""

    def __init__(
        self, room: str, model: str, words: Printer, aside: Printer, now: Callable[[], float] = time.monotonic
    ) -> None:
        """``model`` is the name to show, "" for the one the answer tells."""
        self._room = room
        self._model = model
        self._words = words
        self._aside = aside
        self._now = now
        self._text = ""
        self._thought = False
        self._first: float | None = None
        self._wrong = ""
        self._ended = False

    async def write(self, stream: AskStream) -> Answered:
        """Until its end, or until the stream was closed by somebody."""
        async for event in stream:
            self._heard(event)
        self._words.end()
        self._aside.end()
        return Answered(self._text, self._wrong, stopped=not self._ended)

    def _heard(self, event: AskEvent) -> None:
        match event:
            case Queued():
                self._aside.status(f"{event.ahead} answer{'' if event.ahead == 1 else 's'} come first…")
            case Started():
                self._model = self._model or event.model
                self._aside.status(f"Reading {event.prompt_tokens} tokens…")
            case Spoken():
                self._spoken(event.pieces)
            case Ended():
                self._end(event)
            case Refused():
                self._ended, self._wrong = True, safe(event.why)
                self._aside.line(self._wrong, "bold")

    def _spoken(self, pieces: tuple[Piece, ...]) -> None:
        if self._first is None:
            self._first = self._now()
        for piece in pieces:
            match piece:
                case Reasoning():
                    self._thought = True
                    self._aside.stream(safe(piece.text), QUIET)
                case Words():
                    self._say(piece.text)
                case _:
                    pass  # no tools were offered

    def _say(self, text: str) -> None:
        if self._thought:
            self._thought = False
            self._aside.end()
            text = text.lstrip("\n")
        if not self._text:
            self._aside.end()
        self._text += text
        self._words.stream(safe(text))

    def _end(self, ended: Ended) -> None:
        self._ended = True
        self._words.end()
        if ended.reason in (Reason.FAILED, Reason.ABORTED):
            self._wrong = safe(ended.why) or "The answer broke off."
        note = self._wrong or _CUT.get(ended.reason, "")
        if note:
            self._aside.line(note, "bold")
        seconds = 0.0 if self._first is None else self._now() - self._first
        self._aside.line(figures(self._room, self._model, ended.usage, seconds), QUIET)


def figures(room: str, model: str, usage: Usage, seconds: float) -> str:
    """The line under an answer. ``seconds`` from its first word to its end."""
    speed = f" · {usage.output / seconds:.1f} tok/s" if seconds > 0 and usage.output > 1 else ""
    reused = f" · {usage.reused} of {usage.prompt} prompt tokens reused"
    return f"{format_code(room)} · {safe(model)} · {usage.output} tokens{speed}{reused}"
