"""An answer's tokens as reasoning, words and calls, as they come (spec: rooms §18.4, product A-068)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.prompt.ask import AssistantMessage, Call, Tool
from app.prompt.call_block import CallBlock
from app.prompt.language import Language
from app.prompt.pieces import Piece, Reasoning, Words
from app.prompt.tags import Tag, TagStream
from app.prompt.trimmed import SEPARATORS, Trimmed


class AnswerStream:
    """Pieces never hold a tag, half a tag or half a character. What looks like a call and is none is words.

    ``opened``: the prompt ended inside a think block. ``constrained``: a grammar holds the answer to its form, so
    that calls are streamed; without one a call is given once it is whole.
    """

    def __init__(self, language: Language, tools: Sequence[Tool], *, opened: bool, constrained: bool = True) -> None:
        self._tags = TagStream(language.tokenizer)
        self._tools = {tool.name: tool for tool in tools}
        self._constrained = constrained
        self._part: Callable[[str | Tag], list[Piece]] = self._thought if opened else self._said
        self._words, self._thoughts = Trimmed(), Trimmed()
        self._block: CallBlock | None = None
        self._calls: list[Call] = []
        self._begun = 0
        self._gap = ""
        self._cut = False
        self._shown: list[str] = []
        self._reasoning: list[str] = []
        self.reasoning_tokens = 0
        self.open_call: tuple[int, str] | None = None

    @property
    def in_reasoning(self) -> bool:
        return self._part == self._thought

    @property
    def text(self) -> str:
        """All words so far."""
        return "".join(self._shown)

    @property
    def reasoning(self) -> str:
        """All reasoning so far."""
        return "".join(self._reasoning)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The whole ones."""
        return tuple(self._calls)

    @property
    def answer(self) -> AssistantMessage | None:
        """The answer as a client gives it back; None for one cut in its reasoning or in a call."""
        if self.in_reasoning or self._block or self._cut:
            return None
        return AssistantMessage(self.text, self.calls, self.reasoning)

    def add(self, token: int) -> tuple[Piece, ...]:
        """The pieces that became certain with one sampled token."""
        thinking = self.in_reasoning
        pieces = self._read(self._tags.add(token))
        self.reasoning_tokens += int(thinking and self.in_reasoning)
        return pieces

    def end(self) -> tuple[Piece, ...]:
        """What was held back. A call that was not closed stays open, unless only its last tag is missing."""
        pieces = [*self._read(self._tags.end()), *self._close(ended=True)]
        rest = "" if self.in_reasoning else self._words.end()
        return (*pieces, *self._show(rest))

    def _read(self, parts: Sequence[str | Tag]) -> tuple[Piece, ...]:
        return tuple(piece for part in parts for piece in self._part(part))

    def _thought(self, part: str | Tag) -> list[Piece]:
        """Tags in reasoning say nothing, but for the one that ends it."""
        if part is Tag.THOUGHT:
            self._thoughts.part()
            self._part = self._said
        text = self._thoughts.add(part) if isinstance(part, str) else ""
        self._reasoning.append(text)
        return [Reasoning(text)] if text else []

    def _said(self, part: str | Tag) -> list[Piece]:
        """A closing tag alone says nothing."""
        if isinstance(part, str):
            return self._show(self._words.add(part))
        if part is Tag.THINK:
            self._words.part()
            self._part = self._thought
        elif part is Tag.CALL:
            self._gap = self._words.part(SEPARATORS)
            self._block = CallBlock(self._begun, self._tools, constrained=self._constrained)
            self._part = self._called
        return []

    def _called(self, part: str | Tag) -> list[Piece]:
        """Other tags than those of calls may be part of an argument."""
        if part is Tag.CALLED:
            return self._close()
        if part is Tag.CALL:
            return [*self._close(), *self._said(part)]
        if self._block is None:
            return []
        return self._block.add(part) if isinstance(part, str) else self._block.add(part.value, tag=True)

    def _close(self, *, ended: bool = False) -> list[Piece]:
        block, self._block = self._block, None
        if block is None:
            return []
        self._part = self._said
        pieces, call = block.close()
        self._begun += bool(block.begun)
        if call:
            self._calls.append(call)
            return pieces
        if block.begun:
            self.open_call = (self._begun - 1, block.begun)
        self._cut = bool(block.begun) or (ended and self._constrained)
        return [] if self._cut and ended else self._show(self._words.add(self._gap + block.words))

    def _show(self, text: str) -> list[Piece]:
        self._shown.append(text)
        return [Words(text)] if text else []
