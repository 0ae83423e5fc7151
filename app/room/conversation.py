"""A conversation as the model host keeps it: what fits, what is reused, what is thought (rooms §14.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.core.errors import PromptError
from app.prompt.chat import Turn, UserTurn
from app.prompt.limits import ANSWER_RESERVE

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

Render = Callable[[Sequence[Turn]], list[int]]


@dataclass(frozen=True)
class Fitted:
    """A prompt that leaves room for an answer; ``dropped`` oldest exchanges were left out."""

    ids: tuple[int, ...]
    turns: tuple[Turn, ...]
    dropped: int


def fit_turns(turns: Sequence[Turn], render: Render, context: int, reserve: int = ANSWER_RESERVE) -> Fitted:
    """Drops the oldest exchanges until the prompt fits; PromptError when the last question alone does not."""
    kept, dropped = tuple(turns), 0
    while True:
        ids = render(kept)
        if len(ids) <= context - reserve:
            return Fitted(tuple(ids), kept, dropped)
        shorter = _without_oldest(kept)
        if not shorter:
            raise PromptError(
                f"The question takes {len(ids)} of {context} tokens.", "Shorten it, or open a longer context."
            )
        kept, dropped = shorter, dropped + 1


def _without_oldest(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns from the second question on."""
    questions = [i for i, turn in enumerate(turns) if isinstance(turn, UserTurn)]
    return turns[questions[1] :] if len(questions) > 1 else ()


def reused_prefix(fed: Sequence[int] | None, ids: Sequence[int]) -> int:
    """How many ids the caches already hold; they must be a strict prefix of the new prompt."""
    if fed is None or len(fed) >= len(ids) or list(ids[: len(fed)]) != list(fed):
        return 0
    return len(fed)


@dataclass(frozen=True)
class Thought:
    """An answer's text with its reasoning apart. ``thinking`` None: there is none; ``open``: still going."""

    answer: str
    thinking: str | None = None
    open: bool = False


def split_thinking(text: str) -> Thought:
    """Takes the first reasoning block out; a closing tag alone is text."""
    before, opened, rest = text.partition(THINK_OPEN)
    if not opened:
        return Thought(text)
    thinking, closed, after = rest.partition(THINK_CLOSE)
    if not closed:
        return Thought(before, thinking.strip(), open=True)
    return Thought(before + after.lstrip(), thinking.strip())
