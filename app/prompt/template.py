"""A model's own chat template turned into token ids, with client text kept apart from the format.

The template never sees what people wrote: it gets placeholders, and places them. Only text that the template
itself wrote is searched for special tokens, so nothing in a message can become one. Earlier answers enter as
the exact ids that were sampled, so a follow-up prompt extends the caches.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.errors import PromptError
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.prompt.sandbox import render_bounded
from app.prompt.tokenizer import Tokenizer

SPECIAL_LOOKING = re.compile(r"<[|｜].{1,60}?[|｜]>|</?[A-Za-z_][\w:-]{0,40}>|\[/?[A-Z_]{1,40}\]")


@dataclass(frozen=True)
class ChatTemplate:
    """One model file's template. ``bos`` and ``eos`` are the texts the template may print."""

    source: str
    tokenizer: Tokenizer
    bos: str = ""
    eos: str = ""

    def render(self, turns: Sequence[Turn], system: str = "", *, thinking: bool = False) -> list[int]:
        """Ids of the whole conversation, ready for the next answer, or for going on with an open one.

        Raises PromptError when the template fails or loses the last message.
        """
        slots = _Slots()
        messages = _messages(turns, system, slots)
        still_open = bool(turns) and isinstance(turns[-1], AssistantTurn) and turns[-1].open
        text = render_bounded(self.source, self._variables(messages, thinking, asks=not still_open))
        return _Assembly(self.tokenizer, slots).ids(slots.cut_after_last(text) if still_open else text)

    def _variables(self, messages: list[dict[str, str]], thinking: bool, *, asks: bool) -> dict[str, Any]:
        return {
            "messages": messages,
            "add_generation_prompt": asks,
            "enable_thinking": thinking,
            "bos_token": self.bos,
            "eos_token": self.eos,
            "tools": None,
        }


def _messages(turns: Sequence[Turn], system: str, slots: _Slots) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": slots.text(system)}] if system else []
    for turn in turns:
        match turn:
            case UserTurn():
                messages.append({"role": "user", "content": slots.text(turn.text)})
            case AssistantTurn():
                messages.append({"role": "assistant", "content": slots.exact(turn.ids)})
    return messages


@dataclass
class _Slots:
    """Placeholders of one rendering and what they stand for."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    values: list[str | tuple[int, ...]] = field(default_factory=list[str | tuple[int, ...]])

    def text(self, text: str) -> str:
        """White space stays outside the placeholder, where the template may trim it."""
        core = text.strip()
        start = text.find(core) if core else len(text)
        return text[:start] + (self._slot(core) if core else "") + text[start + len(core) :]

    def exact(self, ids: tuple[int, ...]) -> str:
        return self._slot(ids)

    def _slot(self, value: str | tuple[int, ...]) -> str:
        self.values.append(value)
        return f"\ue000{self.nonce}.{len(self.values) - 1}\ue001"

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(f"\ue000{self.nonce}\\.(\\d{{1,9}})\ue001")

    def cut_after_last(self, text: str) -> str:
        ends = [match.end() for match in self.pattern.finditer(text)]
        return text[: ends[-1]] if ends else text


Part = str | int | tuple[int, ...]


@dataclass(frozen=True)
class _Assembly:
    """Puts ids together: neighbouring plain text is encoded in one piece, as the model learned it."""

    tokenizer: Tokenizer
    slots: _Slots

    def ids(self, rendered: str) -> list[int]:
        parts = list(self._parts(rendered))
        ids: list[int] = []
        plain = ""
        for part in [*parts, ()]:
            if isinstance(part, str):
                plain += part
                continue
            ids += self.tokenizer.encode(plain) if plain else []
            ids += [part] if isinstance(part, int) else part
            plain = ""
        return ids

    def _parts(self, rendered: str) -> Iterator[Part]:
        at, seen = 0, -1
        for match in self.slots.pattern.finditer(rendered):
            yield from self._format(rendered[at : match.start()])
            seen = int(match[1])
            yield self.slots.values[seen]
            at = match.end()
        yield from self._format(rendered[at:])
        if seen != len(self.slots.values) - 1:
            raise PromptError("The model's chat template loses messages.", "Try another model file.")

    def _format(self, text: str) -> Iterator[Part]:
        """What the template itself wrote: its special tokens become ids."""
        at = 0
        for match in SPECIAL_LOOKING.finditer(text):
            token = self.tokenizer.special(match[0])
            if token is not None:
                yield text[at : match.start()]
                yield token
                at = match.end()
        yield text[at:]
