"""A small vocabulary: bytes, a few pieces that cross the borders of a grammar, and special tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.prompt.ask import Ask, Form, JsonFormat, Tool, UserMessage
from app.prompt.grammar.constraint import constraint
from app.prompt.grammar.matcher import Matcher
from app.prompt.grammar.style import CallStyle, ThinkState
from app.prompt.grammar.vocabulary import TAGS, Vocabulary, vocabulary

PIECES = (
    '": {"',
    '": "',
    '", "',
    '"}',
    "}}\n",
    ">\n",
    "</",
    "parameter",
    "function",
    "name",
    "\n\n",
    '{"',
    "  ",
    "[PAD299]",
)
STOPS = {"<|im_end|>": 280, "<|endoftext|>": 281}
SIZE = 310


@dataclass(frozen=True)
class SmallTokenizer:
    """Ids 0 to 255 are bytes. ``tags`` are those that are single tokens of this model."""

    tags: tuple[str, ...] = TAGS
    stop_ids: frozenset[int] = frozenset(STOPS.values())

    def special(self, text: str) -> int | None:
        return STOPS.get(text, 290 + TAGS.index(text) if text in self.tags else None)

    def piece(self, token: int) -> bytes:
        if token < 256:
            return bytes([token])
        if token < 256 + len(PIECES):
            return PIECES[token - 256].encode()
        return self.tags[token - 290].encode() if 290 <= token < 290 + len(self.tags) else b""

    def encode(self, text: str) -> list[int]:
        """The longest piece first."""
        found = re.findall("|".join(map(re.escape, sorted(PIECES, key=len)[::-1])) + r"|(?s:.)", text)
        parts = [[256 + PIECES.index(each)] if each in PIECES else list(each.encode()) for each in found]
        return [token for part in parts for token in part]

    def ids(self, text: str) -> list[int]:
        """With special tokens by their names."""
        ids: list[int] = []
        for part in re.split(r"(<\|\w+\|>|</?think>|</?tool_call>)", text):
            token = self.special(part)
            ids += self.encode(part) if token is None else [token]
        return ids

    def text(self, ids: list[int]) -> str:
        names = {token: name for name, token in STOPS.items()}
        return b"".join(names[token].encode() if token in names else self.piece(token) for token in ids).decode()


FULL = SmallTokenizer()
PLAIN = SmallTokenizer(())
WORDS: dict[SmallTokenizer, Vocabulary] = {each: vocabulary(each, SIZE) for each in (FULL, PLAIN)}


def matcher(
    *tools: Tool,
    form: Form | None = None,
    style: CallStyle = CallStyle.JSON,
    think: ThinkState = ThinkState.NEVER,
    tokenizer: SmallTokenizer = FULL,
) -> Matcher:
    ask = Ask((UserMessage("hi"),), tools=tools, form=form or Form())
    found = constraint(WORDS[tokenizer], ask, style, think)
    assert found is not None
    return found


def fits(found: Matcher, text: str, tokenizer: SmallTokenizer = FULL) -> bool:
    """Whether the whole answer may be written and may end there."""
    ids = [*tokenizer.ids(text), STOPS["<|im_end|>"]]
    return found.valid(ids) == len(ids)


def value_fits(schema: dict[str, object], text: str) -> bool:
    return fits(matcher(form=Form(format=JsonFormat(schema))), text)
