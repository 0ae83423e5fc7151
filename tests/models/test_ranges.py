"""Sets of ranges against sets of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.models.ranges import RangeSet, Span, pieces, read_span

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda p: Span(p[0], p[0] + p[1])), max_size=12)


def members(spans: list[Span]) -> set[int]:
    return {byte for span in spans for byte in range(span.lo, span.hi)}


@given(SPANS, SPANS, st.integers(0, 70), st.integers(0, 12))
def test_sets_of_ranges_are_sets_of_bytes(one: list[Span], other: list[Span], lo: int, size: int) -> None:
    first, second, span = RangeSet.of(one), RangeSet.of(other), Span(lo, lo + size)
    assert members(list((first | second).spans)) == members(one) | members(other)
    assert members(list((first & second).spans)) == members(one) & members(other)
    assert members(list((first - second).spans)) == members(one) - members(other)
    assert members(first.gaps(span)) == members([span]) - members(one)
    assert first.covers(span) == (members([span]) <= members(one))
    assert first.total == len(members(one))
    assert all(a.hi < b.lo for a, b in zip(first.spans, first.spans[1:], strict=False)), "they do not touch"


@given(SPANS, st.integers(1, 9))
def test_pieces_hold_every_byte_once(spans: list[Span], most: int) -> None:
    cut = pieces(spans, most)
    assert sum(piece.size for piece in cut) == len(members(cut)) == len(members(spans))
    assert all(0 < piece.size <= most for piece in cut)


def test_ranges_are_written_with_their_last_byte() -> None:
    assert Span(5, 10).text == "5-9"
    assert read_span("5-9") == Span(5, 10)
    for text in ("", "9-5", "-1-4", "5", "5-", "1-2-3", " 1-2", "0x1-2", "1" * 30 + "-5", "٣-٤"):
        assert read_span(text) is None, text
