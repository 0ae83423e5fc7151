"""What a prompt needs of a model's tokenizer."""

from __future__ import annotations

from typing import Protocol


class Tokenizer(Protocol):
    """Text to ids and back. The engine's tokenizer has this form."""

    def encode(self, text: str) -> list[int]:
        """Plain text; text that looks like a special token stays text."""
        ...

    def special(self, text: str) -> int | None:
        """The id of a special token, or None when the vocabulary has none of that name."""
        ...

    def piece(self, token: int) -> bytes:
        """The raw bytes of one token; empty for special tokens."""
        ...

    @property
    def stop_ids(self) -> frozenset[int]: ...
