"""The parameters the three APIs share: length, sampling, stop sequences, thinking (spec: product §3.4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from app.engine.sampling import MAX_TOP_K
from app.engine.types import Sampling
from app.prompt.ask import Ask, AskMessage, AssistantMessage, Effort, Thinking
from app.prompt.limits import (
    ANSWER_RESERVE,
    LONGEST_STOP,
    MOST_BIASES,
    MOST_CHARS,
    MOST_STOPS,
    MOST_TOKENS,
    USUAL_TEMPERATURE,
    USUAL_TOP_K,
)
from app.room.api.events import ServedModel
from app.serve.errors import bad, too_long
from app.serve.fields import Fields

DEFAULT_TOKENS = 16_384
CHARS_A_TOKEN = 8
"""More letters than this a token never were one prompt, so the request is refused before it is read as tokens."""


@dataclass(frozen=True)
class Facts:
    """What a request is read against."""

    model: ServedModel
    client: str = ""


def most_tokens(fields: Fields, *names: str) -> int:
    """The first of ``names`` that is given; more than the room ever writes is capped, not refused."""
    given = (fields.whole(name, 1) for name in names)
    return min(next((count for count in given if count is not None), DEFAULT_TOKENS), MOST_TOKENS)


def seed_of(fields: Fields) -> int | None:
    """What the words are drawn with; None draws it anew."""
    given = fields.whole("seed", -(1 << 63), (1 << 64) - 1)
    return None if given is None else given % (1 << 63)


def sampling(fields: Fields, hottest: float) -> Sampling | None:
    """None leaves the words to the room's own setting."""
    if not any(fields.has(name) for name in ("temperature", "top_k", "top_p", "min_p")):
        return None
    temperature = fields.number("temperature", 0, hottest)
    top_p = fields.number("top_p", 0, 1)
    return Sampling(
        USUAL_TEMPERATURE if temperature is None else temperature,
        min(fields.whole("top_k", 1) or USUAL_TOP_K, MAX_TOP_K),
        1.0 if top_p is None else top_p,
        fields.number("min_p", 0, 1) or 0.0,
    )


def stops(fields: Fields, name: str) -> tuple[str, ...]:
    raw = fields.raw.get(name)
    texts = [raw] if isinstance(raw, str) else fields.texts(name, MOST_STOPS)
    if not all(0 < len(text) <= LONGEST_STOP for text in texts):
        fields.refuse(name, f"must hold texts of 1 to {LONGEST_STOP} letters")
    return tuple(texts)


def bias(fields: Fields) -> dict[int, float]:
    """What is added to the logits of token ids."""
    given = fields.object("logit_bias")
    if given is None:
        return {}
    if len(given.raw) > MOST_BIASES or not all(
        name.isascii() and name.isdigit() and len(name) < 8 for name in given.raw
    ):
        fields.refuse("logit_bias", f"must map at most {MOST_BIASES} token ids to numbers")
    return {int(name): given.number(name, -100, 100) or 0.0 for name in given.raw}


_EFFORTS = {effort.value: effort for effort in Effort}
_NO_EFFORT = ("none", "minimal")


def thinking_of(fields: Fields, name: str) -> Thinking:
    """Thinking as an effort says it."""
    word = fields.word(name, (*_NO_EFFORT, *_EFFORTS), "none")
    return Thinking(on=word in _EFFORTS, effort=_EFFORTS.get(word))


def refuse_given(fields: Fields, names: Iterable[str], neutral: Mapping[str, tuple[object, ...]]) -> None:
    """Raises ApiError for a parameter that would change the answer and is not supported; neutral values pass."""
    for name in names:
        if fields.has(name) and fields.raw[name] not in ([], {}, *neutral.get(name, ())):
            fields.refuse(name, "is not supported here")


def complete(ask: Ask, facts: Facts) -> Ask:
    """The ask with what follows from its parts. Raises ApiError for one this model cannot answer."""
    _check_size(ask, facts.model.context)
    if ask.tools and not facts.model.tools:
        raise bad("The model that runs now knows no tools.", "Start another one, or ask without tools.", "tools")
    return replace(ask, client=facts.client)


def _check_size(ask: Ask, context: int) -> None:
    chars = len(ask.system) + sum(_letters(message) for message in ask.messages)
    chars += sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in ask.tools)
    if chars > CHARS_A_TOKEN * context:
        raise too_long(chars // CHARS_A_TOKEN, max(0, context - ANSWER_RESERVE))
    if chars > MOST_CHARS:
        raise bad(
            f"The conversation has more than {MOST_CHARS} letters.", "Shorten it.", code="context_length_exceeded"
        )


def _letters(message: AskMessage) -> int:
    if not isinstance(message, AssistantMessage):
        return len(message.text)
    calls = sum(len(call.name) + len(json.dumps(dict(call.arguments))) for call in message.calls)
    return len(message.text) + len(message.reasoning) + calls
