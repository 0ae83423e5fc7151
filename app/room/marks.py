"""Which places of a prompt are likely to be gone on from again (spec: rooms §15.1, §15.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.core.prefix import common_length
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.room.checkpoints import SHORTEST_PIN, Keep, Mark

Render = Callable[[Sequence[Turn]], list[int]]


def prompt_marks(render: Render, turns: Sequence[Turn], ids: Sequence[int], *, pin_any: bool = False) -> list[Mark]:
    """The end of what all prompts begin with, the place where the last question starts, and where the next turn's
    prompt will part from this one: many templates write an old answer otherwise than the beginning of a new one.

    They are found by rendering something else in their place: what stays the same lies before it. ``pin_any``
    pins a beginning of any length.
    """
    at = max((i for i, turn in enumerate(turns) if isinstance(turn, UserTurn)), default=None)
    if at is None:
        return []
    asked = turns[at]
    one, two = [t for t in "123" if not (isinstance(asked, UserTurn) and asked.text.startswith(t))][:2]
    fixed = _common(ids, render([UserTurn(one)]), render([UserTurn(two)]))
    question = _common(ids, render([*turns[:at], UserTurn(one)]))
    answered = _common(ids, render([*turns[: at + 1], AssistantTurn(()), UserTurn(one)]))
    marks = [Mark(fixed, Keep.PIN)] if fixed >= (1 if pin_any else SHORTEST_PIN) else []
    marks += [Mark(question, Keep.TURN)] if question > fixed or not marks else []
    return [*marks, Mark(answered, Keep.ANSWER)] if question < answered < len(ids) else marks


def _common(*rows: Sequence[int]) -> int:
    """Length of the beginning that all rows share."""
    first, *others = rows
    return min(common_length(first, other) for other in others)
