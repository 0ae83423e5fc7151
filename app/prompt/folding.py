"""Messages as clients send them, in the order that every template takes (spec: product A-030, field report B3-25)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
    done: list[AskMessage] = []
    for message in _asides_last(messages):
        merged = _merged(done[-1], message) if done else None
        done[len(done) - (merged is not None) :] = [merged or message]
    return tuple(replace(m, aside=False) if isinstance(m, UserMessage) else m for m in done)


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


def _merged(first: AskMessage, second: AskMessage) -> AskMessage | None:
    """Both as one message; None where they stay two."""
    match first, second:
        case UserMessage(), UserMessage():
            return UserMessage(_joined((first.text, second.text)))
        case ToolMessage(), UserMessage(aside=True):
            return ToolMessage(_joined((first.text, BESIDE.format(text=second.text))))
        case AssistantMessage(), AssistantMessage():
            thought = _joined((first.reasoning, second.reasoning))
            return AssistantMessage(_joined((first.text, second.text)), first.calls + second.calls, thought)
        case _:
            return None


def _joined(texts: Iterable[str]) -> str:
    return GAP.join(text for text in texts if text.strip())
