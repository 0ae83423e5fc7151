"""A model's tokens as the grammar library wants them: bytes an id, and which ids are special (spec: A-061)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from llguidance import LLTokenizer, TokenizerWrapper

from app.core.errors import PromptError
from app.prompt.grammar.cache import Compiled
from app.prompt.tokenizer import Tokenizer

TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
_PADDING = re.compile(rb"\[PAD\d+\]")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """``size``: ids of a row of logits. ``tags``: ids of those tags that are single tokens of this model."""

    library: LLTokenizer
    size: int
    stops: frozenset[int]
    tags: Mapping[str, int]
    compiled: Compiled = field(default_factory=Compiled)


def vocabulary(tokenizer: Tokenizer, size: int) -> Vocabulary:
    """Takes up to a second for a quarter of a million ids, so call it on a thread, once a model.

    Special ids are those without bytes, those found by their name, and padding: free text never holds one.
    Raises PromptError for a model without a stop id among its ``size`` ids.
    """
    stops = frozenset(token for token in tokenizer.stop_ids if 0 <= token < size)
    if not stops:
        raise PromptError("This model has no token that ends an answer.", "Get another file of this model.")
    library = LLTokenizer(TokenizerWrapper(_Source(tokenizer, size, min(stops))), size, sorted(stops))
    found = {tag: tokenizer.special(tag) for tag in TAGS}
    return Vocabulary(library, size, stops, {tag: token for tag, token in found.items() if token is not None})


class _Source:
    """What TokenizerWrapper reads of a tokenizer."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, size: int, end: int) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = end
        pieces = [tokenizer.piece(token) for token in range(size)]
        self.special_token_ids = [token for token, piece in enumerate(pieces) if _special(tokenizer, token, piece)]
        self.tokens = pieces
        for token in self.special_token_ids:
            pieces[token] = f"<|{token}|>".encode()

    def __call__(self, text: bytes) -> list[int]:
        return self._tokenizer.encode(text.decode("utf-8"))


def _special(tokenizer: Tokenizer, token: int, piece: bytes) -> bool:
    if not piece or _PADDING.fullmatch(piece):
        return True
    return piece[:1] in b"<[" and tokenizer.special(piece.decode("utf-8", "replace")) == token
