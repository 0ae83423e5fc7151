"""The exact ids of answers given before, so that a conversation sent again is not read again (spec: product A-090)."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.prompt.ask import AskMessage, AssistantMessage, Tool, ToolMessage, UserMessage
from app.prompt.json_text import too_deep

MOST_ANSWERS = 512
MOST_IDS = 2_000_000


@dataclass(frozen=True)
class KnownAnswer:
    """``ids`` are the prompt's and the answer's as the caches hold them; the rest are places in the prompt."""

    ids: array[int]
    reasoning: str
    fixed: int = 0
    turn: int = 0
    asked: int = 0


class KnownAnswers:
    """The answers of one model, the least used forgotten first. Cleared when another model is loaded."""

    def __init__(self, most_answers: int = MOST_ANSWERS, most_ids: int = MOST_IDS) -> None:
        self._most_answers = most_answers
        self._most_ids = most_ids
        self._held: OrderedDict[bytes, KnownAnswer] = OrderedDict()
        self._ids = 0

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        self._held.clear()
        self._ids = 0

    def keep(self, key: bytes, answer: KnownAnswer) -> None:
        """``key`` as ``answer_keys`` gives it."""
        self._drop(key)
        self._held[key] = answer
        self._ids += len(answer.ids)
        while self._held and (len(self._held) > self._most_answers or self._ids > self._most_ids):
            self._drop(next(iter(self._held)))

    def find(self, key: bytes) -> KnownAnswer | None:
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def _drop(self, key: bytes) -> None:
        gone = self._held.pop(key, None)
        self._ids -= len(gone.ids) if gone else 0


def answer_keys(system: str, tools: Sequence[Tool], messages: Sequence[AskMessage]) -> Iterator[tuple[int, bytes]]:
    """The place and key of every answer: a hash of all before it and of what it says, without its reasoning.

    Raises PromptError for arguments and schemas that are nested too deeply.
    """
    history = hashlib.blake2b(_dumped([system, [[t.name, t.description, t.parameters] for t in tools]]))
    for at, message in enumerate(messages):
        history.update(b"\n" + _canonical(message))
        if isinstance(message, AssistantMessage):
            yield at, history.copy().digest()


def _canonical(message: AskMessage) -> bytes:
    """Clients trim answers, sort arguments, write 1.0 as 1 and leave reasoning out."""
    match message:
        case UserMessage():
            return _dumped(["user", message.text])
        case ToolMessage():
            return _dumped(["tool", message.text])
        case AssistantMessage():
            return _dumped(
                ["assistant", message.text.strip(), [[c.name, _numbers(c.arguments)] for c in message.calls]]
            )


def _numbers(arguments: Mapping[str, object]) -> object:
    """The same value for a number however it is written."""
    return json.loads(_dumped(arguments), parse_float=lambda text: int(n) if (n := float(text)).is_integer() else n)


def _dumped(value: object) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, default=_plain).encode()
    except RecursionError as error:
        raise too_deep() from error


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else repr(value)
