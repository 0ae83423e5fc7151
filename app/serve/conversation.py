"""A conversation as clients tell it, entry by entry, becomes the messages of an ask (spec: product A-030)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from app.prompt.ask import AskMessage, AssistantMessage, Call, Json, ToolMessage, UserMessage
from app.serve.errors import bad

MOST_MESSAGES = 1_000
IMAGE_NOTE = "[An image was here. This room reads text only.]"
FILE_NOTE = "[A file was here. This room reads text only.]"
NOTED = "images and files are left out: the room reads text only"


@dataclass(frozen=True)
class SystemEntry:
    text: str


@dataclass(frozen=True)
class UserEntry:
    """``aside``: said beside results of tools."""

    text: str
    aside: bool = False


@dataclass(frozen=True)
class AssistantEntry:
    """``calls`` under the ids the client knows them by."""

    text: str = ""
    calls: tuple[tuple[str, Call], ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class ResultEntry:
    """What the call ``id`` gave."""

    id: str
    text: str


Entry = SystemEntry | UserEntry | AssistantEntry | ResultEntry


def fold(entries: Sequence[Entry]) -> tuple[str, tuple[AskMessage, ...]]:
    """The system text and the messages. Raises ApiError for a conversation that nobody can answer."""
    count = next((i for i, entry in enumerate(entries) if not isinstance(entry, SystemEntry)), len(entries))
    system = _joined(entry.text for entry in entries[:count] if isinstance(entry, SystemEntry))
    merged = _merge(_in_place(entries[count:]))
    if not merged:
        raise bad("There is no message to answer.", "Send a user message.", "messages")
    if isinstance(merged[-1], AssistantEntry):
        raise bad("The last message is the assistant's.", "End the conversation with a user message.", "messages")
    if len(merged) > MOST_MESSAGES:
        raise bad(f"There are more than {MOST_MESSAGES} messages.", "Shorten the conversation.", "messages")
    return system, tuple(_message(entry) for entry in _in_order_of_calls(merged))


def arguments_of(text: str) -> Json:
    """A call's arguments as a client gives them back; a text that is no object is kept as one argument."""
    try:
        value: object = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    return cast("dict[str, object]", value) if isinstance(value, dict) else {"arguments": text}


def _in_place(entries: Iterable[Entry]) -> list[Entry]:
    """A late system text becomes part of the user's turn at its place."""
    turned: list[Entry] = []
    for entry in entries:
        if isinstance(entry, SystemEntry):
            turned.append(UserEntry(entry.text, aside=bool(turned) and _is_beside(turned[-1])))
        else:
            turned.append(entry)
    return turned


def _is_beside(before: Entry) -> bool:
    """Whether what follows ``before`` is said beside results, and so asks nothing new."""
    return isinstance(before, ResultEntry) or (isinstance(before, UserEntry) and before.aside)


def _merge(entries: Iterable[Entry]) -> list[Entry]:
    """Neighbours of one speaker become one."""
    merged: list[Entry] = []
    for entry in entries:
        last = merged[-1] if merged else None
        if isinstance(entry, UserEntry) and isinstance(last, UserEntry):
            merged[-1] = UserEntry(_joined((last.text, entry.text)), last.aside and entry.aside)
        elif isinstance(entry, AssistantEntry) and isinstance(last, AssistantEntry):
            merged[-1] = _both(last, entry)
        else:
            merged.append(entry)
    return merged


def _both(first: AssistantEntry, second: AssistantEntry) -> AssistantEntry:
    return AssistantEntry(
        _joined((first.text, second.text)),
        first.calls + second.calls,
        _joined((first.reasoning, second.reasoning)),
    )


def _in_order_of_calls(entries: list[Entry]) -> list[Entry]:
    """Results in a row are put in the order of the calls before them; those of no call follow."""
    order: dict[str, int] = {}
    ordered: list[Entry] = []
    row: list[ResultEntry] = []
    for entry in entries:
        if isinstance(entry, ResultEntry):
            row.append(entry)
            continue
        ordered += _sorted(row, order)
        row = []
        ordered.append(entry)
        if isinstance(entry, AssistantEntry):
            order = {identity: place for place, (identity, _) in enumerate(entry.calls)}
    return [*ordered, *_sorted(row, order)]


def _sorted(row: list[ResultEntry], order: dict[str, int]) -> list[ResultEntry]:
    return sorted(row, key=lambda result: order.get(result.id, len(order)))


def _message(entry: Entry) -> AskMessage:
    if isinstance(entry, AssistantEntry):
        return AssistantMessage(entry.text, tuple(call for _, call in entry.calls), entry.reasoning)
    if isinstance(entry, ResultEntry):
        return ToolMessage(entry.text)
    return UserMessage(entry.text, isinstance(entry, UserEntry) and entry.aside)


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)
