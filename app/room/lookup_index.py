"""Prompt lookup that keeps up with an answer: the drafts of ``lookup_drafts``, found without a search."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.lookup import LONGEST_MATCH, SHORTEST_MATCH, WINDOW


class LookupIndex:
    """All ids of a conversation, the last one being the token to verify."""

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self._ids = list(ids)
        self._starts: dict[tuple[int, ...], int] = {}
        for end in range(max(1, len(ids) - WINDOW), len(ids)):
            self._note(end)

    def append(self, token: int) -> None:
        self._note(len(self._ids))
        self._ids.append(token)

    def _note(self, end: int) -> None:
        """Remembers where the runs that end before ``end`` start; a later place wins."""
        for size in range(SHORTEST_MATCH, min(LONGEST_MATCH, end) + 1):
            self._starts[tuple(self._ids[end - size : end])] = end - size

    def drafts(self, most: int) -> list[int]:
        """Up to ``most`` tokens that followed the latest earlier match of the tail; longer matches first."""
        ids = self._ids
        for size in range(LONGEST_MATCH, SHORTEST_MATCH - 1, -1):
            start = self._starts.get(tuple(ids[-size:]))
            if start is not None and start >= len(ids) - WINDOW and most > 0:
                return ids[start + size : start + size + most]
        return []
