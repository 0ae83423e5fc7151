"""Messages as clients send them, in the order that every template takes (spec: product A-030, field report B3-25)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from app.prompt.ask import AskMessage, AssistantMessage, Call, ToolMessage, UserMessage

Role = Literal["system", "developer", "user", "assistant", "tool"]
LATE_SYSTEM = "[A note from the system, not from the user:\n{text}]"
BESIDE = "[The user adds beside this result:\n{text}]"
GAP = "\n\n"


@dataclass(frozen=True)
class Said:
    """One message of a client. ``aside``: a user's words sent beside results of tools."""

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    aside: bool = False


def fold(messages: Sequence[Said]) -> tuple[str, tuple[AskMessage, ...]]:
    """The system text and the turns of an ask.

    Leading system texts are joined. A later one goes to the user's turn before it, or beside the results before
    it; behind an answer it begins the user's next turn, so that what was read already stays as it was. Where there
    are system texts alone, they are the question.
    """
    at = next((i for i, said in enumerate(messages) if not _is_system(said)), len(messages))
    leading = _joined(said.text for said in messages[:at])
    if at == len(messages):
        return "", (UserMessage(leading),) if leading else ()
    return leading, settle([_message(said, messages[i - 1]) for i, said in enumerate(messages) if i >= at])


def settle(messages: Sequence[AskMessage]) -> tuple[AskMessage, ...]:
    """Neighbours of one role become one, and asides part of the results they were said beside."""
    groups: list[list[AskMessage]] = []
    for message in _asides_last(messages):
        if groups and _joins(groups[-1][0], message):
            groups[-1].append(message)
        else:
            groups.append([message])
    return tuple(_merged(group) for group in groups)


def with_system(system: str, messages: Sequence[AskMessage]) -> tuple[AskMessage, ...]:
    """The system text at the start of the conversation, for a template that knows no such role."""
    return settle([UserMessage(system), *messages])


def _is_system(said: Said) -> bool:
    return said.role in ("system", "developer")


def _message(said: Said, before: Said) -> AskMessage:
    match said.role:
        case "system" | "developer":
            return UserMessage(LATE_SYSTEM.format(text=said.text), aside=before.role == "tool" or before.aside)
        case "user":
            return UserMessage(said.text, said.aside)
        case "assistant":
            return AssistantMessage(said.text, said.calls, said.reasoning)
        case "tool":
            return ToolMessage(said.text)


def _asides_last(messages: Iterable[AskMessage]) -> list[AskMessage]:
    """What was said before or between results comes behind the last of them."""
    ordered: list[AskMessage] = []
    waiting: list[AskMessage] = []
    for message in messages:
        if isinstance(message, UserMessage) and message.aside:
            waiting.append(message)
            continue
        if not isinstance(message, ToolMessage):
            ordered += waiting
            waiting.clear()
        ordered.append(message)
    return ordered + waiting


def _joins(first: AskMessage, message: AskMessage) -> bool:
    """Whether a message becomes part of the one that ``first`` begins."""
    if isinstance(first, ToolMessage):
        return isinstance(message, UserMessage) and message.aside
    return type(first) is type(message)


def _merged(group: Sequence[AskMessage]) -> AskMessage:
    """Neighbours as one message; joined once, for there may be thousands."""
    first = group[0]
    if len(group) == 1:
        return replace(first, aside=False) if isinstance(first, UserMessage) else first
    if isinstance(first, ToolMessage):
        return ToolMessage(_joined([first.text, *(BESIDE.format(text=said.text) for said in group[1:])]))
    text = _joined(said.text for said in group)
    if isinstance(first, UserMessage):
        return UserMessage(text)
    answers = [said for said in group if isinstance(said, AssistantMessage)]
    calls = tuple(chain.from_iterable(said.calls for said in answers))
    return AssistantMessage(text, calls, _joined(said.reasoning for said in answers))


def _joined(texts: Iterable[str]) -> str:
    return GAP.join(text for text in texts if text.strip())
