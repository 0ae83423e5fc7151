"""A model's words: its tokenizer, and the format its conversations are written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.prompt.ask import Ask, AssistantMessage
from app.prompt.ask_prompt import AskPrompt, ask_prompt, remember
from app.prompt.chat import Turn
from app.prompt.chatml import ChatMl
from app.prompt.known_answers import KnownAnswers
from app.prompt.profile import Profile
from app.prompt.template import ChatTemplate
from app.prompt.tokenizer import Tokenizer

THINK_TAGS = ("<think>", "</think>")


class ChatFormat(Protocol):
    """Turns into ids, ready for the next answer; raises PromptError."""

    def render(self, turns: Sequence[Turn], system: str = "", *, thinking: bool = False) -> list[int]: ...

    def for_asks(self) -> ChatTemplate: ...


@dataclass(frozen=True)
class Language:
    """What a model host needs to talk with a model."""

    tokenizer: Tokenizer
    chat: ChatFormat

    @property
    def profile(self) -> Profile:
        """What the model can do. PromptError for one without a chat format."""
        return self.chat.for_asks().profile

    def ask_prompt(self, ask: Ask, known: KnownAnswers) -> AskPrompt:
        """Raises PromptError for tools the model does not know, and for a template that fails."""
        return ask_prompt(self.chat.for_asks(), ask, known)

    def remember(
        self, ask: Ask, prompt: AskPrompt, sampled: Sequence[int], answer: AssistantMessage, known: KnownAnswers
    ) -> None:
        """Keeps an answer for the asks that go on from it. ``sampled``: its ids without the one that ended it."""
        remember(self.chat.for_asks(), ask, prompt, sampled, answer, known)

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
