"""A conversation as clients tell it, entry by entry, becomes the messages of an ask (spec: product A-030)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from app.prompt import folding
from app.prompt.ask import AskMessage, AssistantMessage, Call, Json
from app.prompt.folding import Said
from app.prompt.limits import MOST_MESSAGES
from app.serve.errors import bad
from app.serve.json_values import read_json

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
    system, messages = folding.fold([_said(entry) for entry in _in_order_of_calls(entries)])
    if not messages:
        raise bad("There is no message to answer.", "Send a user message.", "messages")
    if isinstance(messages[-1], AssistantMessage):
        raise bad("The last message is the assistant's.", "End the conversation with a user message.", "messages")
    if len(messages) > MOST_MESSAGES:
        raise bad(f"There are more than {MOST_MESSAGES} messages.", "Shorten the conversation.", "messages")
    return system, messages


def _said(entry: Entry) -> Said:
    match entry:
        case SystemEntry():
            return Said("system", entry.text)
        case UserEntry():
            return Said("user", entry.text, aside=entry.aside)
        case AssistantEntry():
            return Said("assistant", entry.text, tuple(call for _, call in entry.calls), entry.reasoning)
        case ResultEntry():
            return Said("tool", entry.text)


def arguments_of(text: str) -> Json:
    """A call's arguments as a client gives them back; a text that is no sound object is kept as one argument.

    Raises ApiError for one too deep or too large to build.
    """
    try:
        value = read_json(text) if text.strip() else {}
    except ValueError:
        value = None
    return cast("dict[str, object]", value) if isinstance(value, dict) else {"arguments": text}


def _in_order_of_calls(entries: Iterable[Entry]) -> list[Entry]:
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
