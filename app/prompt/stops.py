"""Ends an answer's words at a stop sequence of the client, also one that comes in several tokens (product §3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.prompt.held_back import held_back
from app.prompt.pieces import Piece, Words


class StopFilter:
    """Reasoning and calls pass untouched. ``hit`` is the sequence that was found; nothing passes after it.

    The sequence that is whole first counts, of two the longer, however the words are cut.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.hit: str | None = None

    def add(self, pieces: Iterable[Piece]) -> tuple[Piece, ...]:
        """What of ``pieces`` may be shown now."""
        shown: list[Piece] = []
        for piece in pieces:
            shown += self._words(piece.text) if isinstance(piece, Words) else self._other(piece)
        return tuple(shown)

    def end(self) -> tuple[Piece, ...]:
        """The words still held back."""
        held, self._held = self._held, ""
        return (Words(held),) if held else ()

    def _other(self, piece: Piece) -> tuple[Piece, ...]:
        """A stop sequence does not reach over what is no words."""
        return () if self.hit is not None else (*self.end(), piece)

    def _words(self, text: str) -> tuple[Piece, ...]:
        if self.hit is not None:
            return ()
        text = self._held + text
        self.hit = self._first(text)
        safe = len(text) - held_back(text, self._stops) if self.hit is None else text.index(self.hit)
        self._held = text[safe:] if self.hit is None else ""
        return (Words(text[:safe]),) if safe else ()

    def _first(self, text: str) -> str | None:
        found = [(text.index(stop) + len(stop), -len(stop), stop) for stop in self._stops if stop in text]
        return min(found)[2] if found else None
