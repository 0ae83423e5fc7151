"""Sets of byte ranges: what of a file is there, and what is missing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_TEXT = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")


@dataclass(frozen=True, order=True)
class Span:
    """Bytes from ``lo`` up to, not including, ``hi``."""

    lo: int
    hi: int

    @property
    def size(self) -> int:
        return self.hi - self.lo

    @property
    def text(self) -> str:
        """ "first-last", both included, as HTTP and rooms write ranges."""
        return f"{self.lo}-{self.hi - 1}"


def read_span(text: str) -> Span | None:
    """The span of "first-last"; None for anything else."""
    match = _TEXT.fullmatch(text)
    if match is None or int(match[2]) < int(match[1]):
        return None
    return Span(int(match[1]), int(match[2]) + 1)


@dataclass(frozen=True)
class RangeSet:
    """Disjoint spans in order, no two of which touch. Make one with ``of``."""

    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, spans: Iterable[Span]) -> RangeSet:
        """The union of any spans; empty ones do not count."""
        joined: list[Span] = []
        for span in sorted(s for s in spans if s.size > 0):
            if joined and span.lo <= joined[-1].hi:
                joined[-1] = Span(joined[-1].lo, max(joined[-1].hi, span.hi))
            else:
                joined.append(span)
        return cls(tuple(joined))

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(span.size for span in self.spans)

    def covers(self, span: Span) -> bool:
        index = bisect_right(self.spans, span.lo, key=lambda s: s.lo) - 1
        return span.size <= 0 or (index >= 0 and span.hi <= self.spans[index].hi)

    def __or__(self, other: RangeSet) -> RangeSet:
        return RangeSet.of((*self.spans, *other.spans))

    def __and__(self, other: RangeSet) -> RangeSet:
        return self - (self - other)

    def __sub__(self, other: RangeSet) -> RangeSet:
        return RangeSet.of(gap for span in self.spans for gap in other.gaps(span))

    def gaps(self, span: Span) -> list[Span]:
        """What of ``span`` is not in the set."""
        within = [s for s in self.spans if s.lo < span.hi and s.hi > span.lo]
        edges = [span.lo, *(edge for s in within for edge in (s.lo, s.hi)), span.hi]
        return [Span(lo, hi) for lo, hi in list(pairwise(edges))[::2] if lo < hi]


def pieces(spans: Iterable[Span], most: int) -> list[Span]:
    """The union cut into spans of at most ``most`` bytes."""
    return [
        Span(lo, min(lo + most, span.hi)) for span in RangeSet.of(spans).spans for lo in range(span.lo, span.hi, most)
    ]
