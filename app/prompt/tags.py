"""A stream of tokens as text and tags, whether a vocabulary has a token for a tag or spells it out."""

from __future__ import annotations

from enum import Enum

from app.prompt.held_back import held_back
from app.prompt.tokenizer import Tokenizer
from app.prompt.utf8 import Utf8Stream


class Tag(Enum):
    """The tags a model sets around the parts of an answer."""

    THINK = "<think>"
    THOUGHT = "</think>"
    CALL = "<tool_call>"
    CALLED = "</tool_call>"
    RESULT = "<tool_response>"
    RESULTED = "</tool_response>"


class TagStream:
    """Holds back half a character, and what may become a tag."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        ids = {tag: tokenizer.special(tag.value) for tag in Tag}
        self._by_id = {token: tag for tag, token in ids.items() if token is not None}
        self._spelled = {tag.value: tag for tag, token in ids.items() if token is None}
        self._utf8 = Utf8Stream()
        self._held = ""

    def add(self, token: int) -> list[str | Tag]:
        """What became certain with one token."""
        tag = self._by_id.get(token)
        if tag is not None:
            self._utf8 = Utf8Stream()
            return [*self.end(), tag]
        if token in self._tokenizer.stop_ids:
            return []
        return self._text(self._utf8.add(self._tokenizer.piece(token)))

    def end(self) -> list[str | Tag]:
        """The text held back, which is no tag after all."""
        held, self._held = self._held, ""
        return [held] if held else []

    def _text(self, text: str) -> list[str | Tag]:
        text = self._held + text
        found: list[str | Tag] = []
        while place := self._first(text):
            at, tag = place
            found += [text[:at], tag]
            text = text[at + len(tag.value) :]
        safe = len(text) - held_back(text, self._spelled)
        self._held = text[safe:]
        return [part for part in [*found, text[:safe]] if part]

    def _first(self, text: str) -> tuple[int, Tag] | None:
        places = [(text.find(name), tag) for name, tag in self._spelled.items() if name in text]
        return min(places, key=lambda place: place[0], default=None)
