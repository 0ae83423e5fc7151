"""ChatML built from ids, for a model whose file carries no template of its own (spec: rooms §14.1, §18.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from app.core.errors import PromptError
from app.prompt.chat import AssistantTurn, Turn, UserTurn
from app.prompt.template import ChatTemplate
from app.prompt.tokenizer import Tokenizer


@cache
def _source() -> str:
    return Path(__file__).with_name("chatml.jinja").read_text(encoding="utf-8")


@dataclass(frozen=True)
class ChatMl:
    """Special tokens enter as ids; what a person wrote is always encoded as plain text."""

    tokenizer: Tokenizer

    def render(self, turns: Sequence[Turn], system: str = "", *, thinking: bool = False) -> list[int]:
        """Ids of the whole conversation, ready for the next answer. PromptError without ChatML tokens."""
        ids = self._block("system", system) if system else []
        for turn in turns:
            match turn:
                case UserTurn():
                    ids += self._block("user", turn.text) + self._opening(thinking)
                case AssistantTurn():
                    ids += [*turn.ids] if turn.open else [*turn.ids, self._id("<|im_end|>"), *self._plain("\n")]
        return ids

    def for_asks(self) -> ChatTemplate:
        """The same format as a template, which also has places for tools. PromptError without ChatML tokens."""
        self._id("<|im_start|>")
        return self._template

    @cached_property
    def _template(self) -> ChatTemplate:
        thinks = self._has("<think>", "</think>")
        source = "{% set thinks = true %}" + _source() if thinks else _source()
        return ChatTemplate(source, self.tokenizer, calls=self._has("<tool_call>", "</tool_call>"))

    def _has(self, *tags: str) -> bool:
        return all(self.tokenizer.special(tag) is not None for tag in tags)

    def _block(self, role: str, text: str) -> list[int]:
        body = self._plain(f"{role}\n{text}")
        return [self._id("<|im_start|>"), *body, self._id("<|im_end|>"), *self._plain("\n")]

    def _opening(self, thinking: bool) -> list[int]:
        """The answer's beginning; with thinking off an empty, closed think block where the model has one."""
        start = [self._id("<|im_start|>"), *self._plain("assistant\n")]
        opened, closed = self.tokenizer.special("<think>"), self.tokenizer.special("</think>")
        if thinking or opened is None or closed is None:
            return start
        gap = self._plain("\n\n")
        return [*start, opened, *gap, closed, *gap]

    def _plain(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def _id(self, name: str) -> int:
        token = self.tokenizer.special(name)
        if token is None:
            raise PromptError("This model has no chat format.", "Choose a model made for chat.")
        return token
