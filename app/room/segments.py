"""Which positions were computed as which class, so that computing them again gives the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.core.prefix import common_length
from app.engine.types import ColumnClass


@dataclass(frozen=True)
class Segment:
    """Positions [start, end) of one class."""

    start: int
    end: int
    kind: ColumnClass


@dataclass(frozen=True)
class Fed:
    """Token ids the caches hold, or held before they were lost, with the class of each stretch."""

    ids: tuple[int, ...] = ()
    segments: tuple[Segment, ...] = ()

    def grown(self, ids: Sequence[int], kind: ColumnClass) -> Fed:
        start, end = len(self.ids), len(self.ids) + len(ids)
        last = self.segments[-1] if self.segments else None
        if last is not None and last.kind is kind:
            merged = (*self.segments[:-1], Segment(last.start, end, kind))
        else:
            merged = (*self.segments, Segment(start, end, kind))
        return Fed((*self.ids, *ids), merged)

    def cut(self, length: int) -> Fed:
        kept = (Segment(s.start, min(s.end, length), s.kind) for s in self.segments if s.start < length)
        return Fed(self.ids[:length], tuple(kept))

    def common(self, ids: Sequence[int]) -> int:
        """Length of the common prefix with ``ids``."""
        return common_length(self.ids, ids)


def feed_plan(before: Fed, ids: Sequence[int], start: int) -> tuple[Segment, ...]:
    """How ``ids[start:]`` are computed: as before where they were computed before, then as a prompt.

    The last id is always a step of its own: its column goes through the head.
    """
    last = len(ids) - 1
    known = before.cut(min(before.common(ids), last))
    again = [Segment(max(s.start, start), s.end, s.kind) for s in known.segments if s.end > start]
    fresh = max(start, len(known.ids))
    prompt = [Segment(fresh, last, ColumnClass.PROMPT)] if fresh < last else []
    return (*again, *prompt, Segment(last, last + 1, ColumnClass.STEP))


def rounds(segments: Sequence[Segment], width: int) -> Iterator[Segment]:
    """Stretches of at most ``width`` columns, never across two classes."""
    for segment in segments:
        for start in range(segment.start, segment.end, width):
            yield Segment(start, min(start + width, segment.end), segment.kind)
