"""What the room says is checked before a client hears it: another device may have said it (spec: product A-006)."""

from __future__ import annotations

import json

from app.prompt.ask import Ask
from app.prompt.limits import MOST_CALLS_READ
from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Piece, Reasoning
from app.room.api.events import AskEvent, Ended, Queued, Refused, Spoken, Started
from app.serve.errors import ApiError, Problem

LONGEST_TEXT = 4_096
SPARE_TOKENS = 16
LARGEST_KIND = 8 << 20


class Checker:
    """Follows one answer. ``check`` raises ApiError at the first thing that cannot be."""

    def __init__(self, ask: Ask) -> None:
        self._most_spoken = ask.most_tokens + SPARE_TOKENS
        self._names = _callable(ask)
        self._started = self._over = False
        self._spoken = self._reasoning = self._words = self._calls = 0
        self._arguments: list[str] | None = None
        self._arguments_size = 0

    def check(self, event: AskEvent) -> None:
        _demand(not self._over, "went on after its end")
        if isinstance(event, Spoken):
            self._check_spoken(event)
        elif isinstance(event, Started):
            _demand(not self._started and event.prompt_tokens >= 0, "began twice")
            self._started = True
        elif isinstance(event, Ended):
            _demand(self._started and min(_counts(event)) >= 0, "ended before it began")
            self._over = True
        elif isinstance(event, Refused):
            self._over = True
        else:
            assert isinstance(event, Queued)
            _demand(not self._started and event.ahead >= 0, "was queued after it began")

    def _check_spoken(self, event: Spoken) -> None:
        self._spoken += 1
        _demand(self._started, "spoke before it began")
        _demand(self._spoken <= self._most_spoken, "is longer than was asked")
        for piece in event.pieces:
            self._check_piece(piece)

    def _check_piece(self, piece: Piece) -> None:
        if isinstance(piece, CallBegun):
            _demand(self._arguments is None and piece.index == self._calls < MOST_CALLS_READ, "has calls out of order")
            _demand(piece.name in self._names, "calls a tool that was not offered")
            self._arguments = []
        elif isinstance(piece, (CallArguments, CallEnded)):
            _demand(self._arguments is not None and piece.index == self._calls, "has calls out of order")
            self._check_arguments(piece)
        else:
            _demand(self._arguments is None, "speaks inside a call")
            self._check_text(piece.text, reasoning=isinstance(piece, Reasoning))

    def _check_text(self, text: str, *, reasoning: bool) -> None:
        _demand(len(text) <= LONGEST_TEXT, "has a token that is too long")
        self._reasoning += len(text) if reasoning else 0
        self._words += 0 if reasoning else len(text)
        _demand(max(self._reasoning, self._words) <= LARGEST_KIND, "is too large")

    def _check_arguments(self, piece: CallArguments | CallEnded) -> None:
        assert self._arguments is not None
        if isinstance(piece, CallArguments):
            _demand(len(piece.text) <= LONGEST_TEXT, "has a token that is too long")
            self._arguments_size += len(piece.text)
            _demand(self._arguments_size <= LARGEST_KIND, "is too large")
            self._arguments.append(piece.text)
            return
        _demand(_is_object("".join(self._arguments)), "calls a tool with arguments that are not JSON")
        self._calls += 1
        self._arguments = None


def _callable(ask: Ask) -> frozenset[str]:
    declared = [tool.name for tool in ask.tools]
    return frozenset(declared) & frozenset(ask.form.chosen(declared))


def _counts(ended: Ended) -> tuple[int, ...]:
    usage = ended.usage
    return usage.prompt, usage.reused, usage.prompt - usage.reused, usage.output, usage.reasoning


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _demand(holds: bool, fault: str) -> None:
    if not holds:
        raise ApiError(Problem.FAILED, f"The answer the room sent {fault}.", "Ask again.", code="protocol")
