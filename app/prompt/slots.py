"""Placeholders that stand for what people wrote while a template is rendered (spec: rooms §18.5).

A placeholder survives what templates do to text: trimming, splitting at tags, changes of case. One that was cut
in two, or printed a character at a time, is found out.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from app.core.errors import PromptError

Value = str | tuple[int, ...]


@dataclass(frozen=True)
class Slot:
    """What a placeholder stands for. ``origin`` is the first placeholder that it was made from."""

    value: Value
    origin: int


def sound(text: str) -> str:
    """Text without halves of characters, which JSON can bring and no tokenizer reads."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _nonce() -> str:
    """Digits alone: they have no case that a template could change."""
    return str(secrets.randbelow(10**16)).zfill(16)


@dataclass
class Slots:
    """Placeholders of one rendering and what they stand for."""

    nonce: str = field(default_factory=_nonce)
    all: list[Slot] = field(default_factory=list[Slot])

    def text(self, text: str) -> str:
        """White space stays outside the placeholder, where the template may trim it."""
        text = sound(text)
        core = text.strip()
        start = text.find(core) if core else len(text)
        return text[:start] + (self._add(core) if core else "") + text[start + len(core) :]

    def whole(self, text: str) -> str:
        """All of a text in one placeholder, for names and keys that are never trimmed."""
        return self._add(sound(text))

    def exact(self, ids: tuple[int, ...]) -> str:
        return self._add(ids)

    def in_json(self, dumped: str) -> str:
        """JSON text that holds placeholders, with what they stand for escaped as JSON wants it."""
        return self.pattern.sub(lambda match: self._escaped(self.all[int(match[1])]), dumped)

    def origins(self, text: str) -> list[int]:
        """Placeholders in the order they were made."""
        return [int(match[1]) for match in self.pattern.finditer(text)]

    def split(self, rendered: str) -> Iterator[str | Slot]:
        """What the template wrote and the slots it placed, in turn. PromptError when one was damaged."""
        at = 0
        for match in self.pattern.finditer(rendered):
            yield self._unbroken(rendered[at : match.start()])
            yield self.all[int(match[1])]
            at = match.end()
        yield self._unbroken(rendered[at:])

    def cut_after_last(self, text: str) -> str:
        ends = [match.end() for match in self.pattern.finditer(text)]
        return text[: ends[-1]] if ends else text

    def after(self, text: str, slot: int) -> str:
        """What follows a placeholder."""
        return text.rpartition(self._mark(slot))[2]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(f"\ue000{self.nonce}\\.(\\d{{9}})\ue001")

    def _unbroken(self, text: str) -> str:
        if "\ue000" in text or "\ue001" in text:
            raise PromptError("The model's chat template changes messages.", "Try another model file.")
        return text

    def _escaped(self, slot: Slot) -> str:
        return self._add(json.dumps(slot.value, ensure_ascii=False)[1:-1], slot.origin)

    def _add(self, value: Value, origin: int | None = None) -> str:
        self.all.append(Slot(value, len(self.all) if origin is None else origin))
        return self._mark(len(self.all) - 1)

    def _mark(self, slot: int) -> str:
        """Of one length, so that keys which a template sorts keep the order they came in."""
        return f"\ue000{self.nonce}.{slot:09d}\ue001"
