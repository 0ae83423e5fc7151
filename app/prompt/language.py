"""A model's words: its tokenizer, and the format its conversations are written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.prompt.chat import Turn
from app.prompt.chatml import ChatMl
from app.prompt.template import ChatTemplate
from app.prompt.tokenizer import Tokenizer

THINK_TAGS = ("<think>", "</think>")


class ChatFormat(Protocol):
    """Turns into ids, ready for the next answer; raises PromptError."""

    def render(self, turns: Sequence[Turn], system: str = "", *, thinking: bool = False) -> list[int]: ...


@dataclass(frozen=True)
class Language:
    """What a model host needs to talk with a model."""

    tokenizer: Tokenizer
    chat: ChatFormat

    def piece(self, token: int) -> bytes:
        """Bytes of a sampled token; reasoning tags are special tokens, yet screens need them as text."""
        raw = self.tokenizer.piece(token)
        if raw:
            return raw
        return next((tag.encode() for tag in THINK_TAGS if self.tokenizer.special(tag) == token), b"")


def language(tokenizer: Tokenizer, template: str | None, bos: str = "", eos: str = "") -> Language:
    """The model's own template where its file carries one, else ChatML."""
    chat = ChatTemplate(template, tokenizer, bos, eos) if template else ChatMl(tokenizer)
    return Language(tokenizer, chat)
