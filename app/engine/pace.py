"""How much of a prompt chunk goes into one submit: a desktop ends what keeps its GPU for seconds (spec: wgpu §5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

LONGEST = 0.25
"""Seconds a submit may be expected to take: half of what a watchdog may be set to."""

T = TypeVar("T")


class Pace:
    """Learns from each chunk; the first goes piece by piece."""

    def __init__(self) -> None:
        self._each = LONGEST

    def split(self, pieces: Sequence[T], columns: int) -> list[list[T]]:
        """Pieces of a chunk, in order, in as few groups as stay within ``LONGEST``."""
        size = max(int(LONGEST / (self._each * columns)), 1)
        return [list(pieces[i : i + size]) for i in range(0, len(pieces), size)]

    def measured(self, pieces: int, columns: int, seconds: float) -> None:
        """A chunk of so many pieces and columns took so long."""
        self._each = max(seconds / (pieces * columns), 1e-9)
