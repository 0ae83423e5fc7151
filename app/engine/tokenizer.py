"""Byte-level BPE from a GGUF's own metadata, on the tokenizers library (spec: engine §2).

Plain text never yields a special token: those are only reached by name. The pre-tokenizer is the one
the file names; an unknown name is refused, because a wrong split is a silent loss of quality.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from app.core.errors import ModelError
from app.engine.gguf.metadata import Metadata

_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_TAIL}"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_TAIL}"
_QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_TAIL}"
)

# Patterns applied one after another, each to the pieces of the one before.
PRE_TOKENIZERS: dict[str, tuple[str, ...]] = {
    "default": (_GPT2,),
    "gpt-2": (_GPT2,),
    "smollm": (r"\p{N}", _GPT2),
    "qwen2": (_QWEN2,),
    "qwen35": (_QWEN35,),
    "llama-bpe": (_LLAMA3,),
}

_CONTROL, _USER_DEFINED = 3, 4
_STOP_NAMES = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>")


class GgufTokenizer:
    """Text to ids and back for one model. ``template`` is its chat template, or None."""

    def __init__(self, metadata: Metadata) -> None:
        """Raises ModelError for a tokenizer kind, pre-tokenizer or vocabulary that cannot be used."""
        self.tokens = _tokens(metadata)
        self.template: str | None = _text(metadata, "tokenizer.chat_template")
        self._bos = _id(metadata, "tokenizer.ggml.bos_token_id", len(self.tokens))
        self._eos = _id(metadata, "tokenizer.ggml.eos_token_id", len(self.tokens))
        self._eot = _id(metadata, "tokenizer.ggml.eot_token_id", len(self.tokens))
        self._control, self._user = _special_ids(metadata, len(self.tokens))
        self._specials = {self.tokens[i]: i for i in sorted(self._control | self._user)}
        self._bpe = _build(metadata, self.tokens, self._control | self._user)

    @property
    def size(self) -> int:
        return len(self.tokens)

    @property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end an answer."""
        named = (self._specials[name] for name in _STOP_NAMES if name in self._specials)
        return frozenset(i for i in (self._eos, self._eot, *named) if i is not None)

    @property
    def bos_text(self) -> str:
        """The token that begins a prompt, as a template writes it; "" for none."""
        return self._text_of(self._bos)

    @property
    def eos_text(self) -> str:
        """The token that ends a turn, as a template writes it; "" for none."""
        return self._text_of(self._eos)

    def _text_of(self, token: int | None) -> str:
        return "" if token is None else self.tokens[token]

    def encode(self, text: str) -> list[int]:
        """Plain text; what looks like a special token stays text. Linear in the length of the text."""
        return self._bpe.encode(text, add_special_tokens=False).ids

    def encode_with_specials(self, text: str) -> list[int]:
        """Text the program wrote itself, where special tokens count, longest name first."""
        ids: list[int] = []
        for piece in self._special_pattern.split(text) if self._specials else [text]:
            ids += [self._specials[piece]] if piece in self._specials else self.encode(piece) if piece else []
        return ids

    def special(self, text: str) -> int | None:
        """The id of a special token by name, or None."""
        return self._specials.get(text)

    def piece(self, token: int) -> bytes:
        """The bytes a token stands for; none for control tokens and padding past the vocabulary."""
        if token in self._control or not 0 <= token < len(self.tokens):
            return b""
        text = self.tokens[token]
        if token in self._user:
            return text.encode("utf-8")
        return b"".join(_BYTE_OF.get(char, char.encode("utf-8")) for char in text)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of whole ids; a broken tail shows as the replacement character."""
        return b"".join(self.piece(i) for i in ids).decode("utf-8", errors="replace")

    @cached_property
    def _special_pattern(self) -> re.Pattern[str]:
        names = sorted(self._specials, key=len, reverse=True)
        return re.compile("(" + "|".join(re.escape(name) for name in names) + ")")


def _build(metadata: Metadata, tokens: list[str], hidden: frozenset[int]) -> Tokenizer:
    kind = metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelError(
            f"Tokenizers of kind {kind} are not supported.", "Pick a model with a byte-level BPE tokenizer."
        )
    name = str(metadata.get("tokenizer.ggml.pre", "default"))
    vocabulary = {token: i for i, token in enumerate(tokens) if i not in hidden}
    model = models.BPE(vocabulary, _merges(metadata, vocabulary), ignore_merges=name == "llama-bpe")
    tokenizer = Tokenizer(model)
    splits: list[Any] = [pre_tokenizers.Split(Regex(p), "isolated") for p in _patterns(name)]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])  # pyright: ignore[reportAttributeAccessIssue]
    return tokenizer


def _patterns(name: str) -> tuple[str, ...]:
    if name not in PRE_TOKENIZERS:
        near = difflib.get_close_matches(name, PRE_TOKENIZERS, 1)
        raise ModelError(
            f"The model's text splitter {name} is unknown here.",
            f"The nearest known one is {near[0]}." if near else "Known: " + ", ".join(PRE_TOKENIZERS) + ".",
        )
    return PRE_TOKENIZERS[name]


def _tokens(metadata: Metadata) -> list[str]:
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(t, str) for t in tokens):
        raise ModelError("The model file carries no vocabulary.", "Get a complete file.")
    return tokens


def _merges(metadata: Metadata, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Pairs in rank order; those whose parts or result are not in the vocabulary can never apply."""
    lines = metadata.get("tokenizer.ggml.merges") or []
    if not isinstance(lines, list):
        raise ModelError("The model file carries no list of merges.", "Get a complete file.")
    pairs = [str(line).split(" ", 1) for line in lines]
    return [
        (pair[0], pair[1])
        for pair in pairs
        if len(pair) == 2 and pair[0] in vocabulary and pair[1] in vocabulary and "".join(pair) in vocabulary
    ]


def _special_ids(metadata: Metadata, size: int) -> tuple[frozenset[int], frozenset[int]]:
    kinds = metadata.get("tokenizer.ggml.token_type") or []
    if not isinstance(kinds, list) or len(kinds) > size:
        raise ModelError("The vocabulary and its token kinds do not fit together.", "Get another file.")
    control = frozenset(i for i, kind in enumerate(kinds) if kind == _CONTROL)
    return control, frozenset(i for i, kind in enumerate(kinds) if kind == _USER_DEFINED)


def _id(metadata: Metadata, key: str, size: int) -> int | None:
    value = metadata.get(key)
    return value if isinstance(value, int) and 0 <= value < size else None


def _text(metadata: Metadata, key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) else None


def _byte_map() -> dict[str, bytes]:
    """GPT-2's printable stand-ins for bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in printable]
    chars = [*printable, *range(256, 256 + len(rest))]
    return {chr(char): bytes([byte]) for char, byte in zip(chars, [*printable, *rest], strict=True)}


_BYTE_OF = _byte_map()
