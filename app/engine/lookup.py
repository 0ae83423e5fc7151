"""Prompt lookup: drafts copied from an earlier place with the same last tokens (spec: rooms §14.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lookup:
    """Matches of ``longest`` down to ``shortest`` tokens that start within the last ``window``."""

    window: int = 16_384
    longest: int = 4
    shortest: int = 2


class LookupIndex:
    """All ids of a conversation, the last one being the token to verify; it keeps up with an answer."""

    def __init__(self, ids: Sequence[int] = (), rule: Lookup = Lookup()) -> None:
        self._rule = rule
        self._ids = list(ids)
        self._starts: dict[tuple[int, ...], int] = {}
        for end in range(max(1, len(ids) - rule.window), len(ids)):
            self._note(end)

    def append(self, token: int) -> None:
        self._note(len(self._ids))
        self._ids.append(token)

    def _note(self, end: int) -> None:
        """Remembers where the runs that end before ``end`` start; a later place wins."""
        for size in range(self._rule.shortest, min(self._rule.longest, end) + 1):
            self._starts[tuple(self._ids[end - size : end])] = end - size

    def drafts(self, most: int) -> list[int]:
        """Up to ``most`` tokens that followed the latest earlier match of the tail; longer matches first."""
        ids, rule = self._ids, self._rule
        for size in range(rule.longest, rule.shortest - 1, -1):
            start = self._starts.get(tuple(ids[-size:]))
            if start is not None and start >= len(ids) - rule.window and most > 0:
                return ids[start + size : start + size + most]
        return []
