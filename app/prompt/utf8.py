"""Text of a token stream that never shows half a character."""

from __future__ import annotations

import codecs


class Utf8Stream:
    """Holds back the bytes of an unfinished character until the rest comes.

    Bytes that can never become a character show as U+FFFD; an unfinished end shows nothing.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, piece: bytes) -> str:
        """The text that became whole with ``piece``."""
        return self._decoder.decode(piece)

    @property
    def pending(self) -> bool:
        """Whether bytes are held back."""
        return bool(self._decoder.getstate()[0])
