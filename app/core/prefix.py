"""How far two rows of numbers are the same."""

from __future__ import annotations

from collections.abc import Sequence

BLOCK = 512
"""Compared at once, which is much quicker than one by one."""


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning."""
    most, start = min(len(one), len(other)), 0
    while start < most and list(one[start : start + BLOCK]) == list(other[start : start + BLOCK]):
        start += BLOCK
    end = min(start + BLOCK, most)
    return next((i for i in range(start, end) if one[i] != other[i]), end)
