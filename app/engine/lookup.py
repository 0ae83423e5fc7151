"""Prompt lookup: drafts copied from an earlier place with the same last tokens (spec: rooms §14.6)."""

from __future__ import annotations

from collections.abc import Sequence

WINDOW = 16_384
LONGEST_MATCH = 4
SHORTEST_MATCH = 2


def lookup_drafts(
    context: Sequence[int],
    most: int,
    *,
    window: int = WINDOW,
    longest: int = LONGEST_MATCH,
    shortest: int = SHORTEST_MATCH,
) -> list[int]:
    """Up to ``most`` tokens that followed the latest earlier match of the tail; longer matches first.

    ``context`` ends with the token to verify. Only starts within the last ``window`` tokens count.
    """
    if most < 1:
        return []
    earliest = max(0, len(context) - window)
    for size in range(longest, shortest - 1, -1):
        start = _latest_match(context, size, earliest)
        if start is not None:
            return list(context[start + size : start + size + most])
    return []


def _latest_match(context: Sequence[int], size: int, earliest: int) -> int | None:
    tail = list(context[-size:])
    for start in range(len(context) - size - 1, earliest - 1, -1):
        if context[start] == tail[0] and list(context[start : start + size]) == tail:
            return start
    return None
