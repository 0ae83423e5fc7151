"""A tokenizer whose tokens are whatever pieces a test cuts a text into."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.prompt.chatml import ChatMl
from app.prompt.language import Language

START, END = "<|im_start|>", "<|im_end|>"
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
SPECIALS = {name: 1000 + i for i, name in enumerate((START, END, *TAGS))}
CHAT_ONLY = {name: SPECIALS[name] for name in (START, END)}
NAMES = {token: name for name, token in SPECIALS.items()}
FIRST_CHUNK = 2000


@dataclass
class ChunkTokenizer:
    """Plain text is bytes. ``spell`` makes a token of every chunk; tags are tokens where they are special."""

    specials: dict[str, int] = field(default_factory=lambda: dict(SPECIALS))
    chunks: list[bytes] = field(default_factory=list[bytes])
    stop_ids: frozenset[int] = frozenset({SPECIALS[END]})

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def special(self, text: str) -> int | None:
        return self.specials.get(text)

    def piece(self, token: int) -> bytes:
        if token >= FIRST_CHUNK:
            return self.chunks[token - FIRST_CHUNK]
        return bytes([token]) if token < 256 else NAMES[token].encode() if NAMES[token] in TAGS else b""

    def spell(self, text: str, cuts: Sequence[int] = ()) -> list[int]:
        """Ids of an answer, cut after so many bytes each, in turn and from the start again; without cuts in bytes."""
        ids: list[int] = []
        for part in re.split("(" + "|".join(map(re.escape, self.specials)) + ")", text):
            ids += [self.specials[part]] if part in self.specials else self._cut(part.encode(), cuts)
        return ids

    def _cut(self, raw: bytes, cuts: Sequence[int]) -> list[int]:
        ids: list[int] = []
        while raw:
            size = cuts[len(ids) % len(cuts)] if cuts else 1
            self.chunks.append(raw[:size])
            ids.append(FIRST_CHUNK + len(self.chunks) - 1)
            raw = raw[size:]
        return ids


def shown(ids: Sequence[int]) -> str:
    """Ids as text, with every special token in brackets that no test text has; chunks as dots."""
    parts = [f"⟦{NAMES[t]}⟧".encode() if t in NAMES else bytes([t]) if t < 256 else b"." for t in ids]
    return b"".join(parts).decode()


def chat_ml(specials: dict[str, int] | None = None) -> Language:
    tokenizer = ChunkTokenizer(dict(SPECIALS if specials is None else specials))
    return Language(tokenizer, ChatMl(tokenizer))
