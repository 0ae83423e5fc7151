"""The end of a text that may be the beginning of a mark which is not all there yet."""

from __future__ import annotations

from collections.abc import Iterable


def held_back(text: str, marks: Iterable[str]) -> int:
    """How many characters at the end of ``text`` could go on to one of ``marks``; a whole mark is not counted."""
    return max((_overlap(text, mark) for mark in marks), default=0)


def _overlap(text: str, mark: str) -> int:
    longest = min(len(text), len(mark) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
