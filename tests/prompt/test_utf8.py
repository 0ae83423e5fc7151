"""No stream ever shows half a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.prompt.utf8 import Utf8Stream

EMOJI = "🦦".encode()


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_emoji_in_two_tokens_comes_whole(cut: int) -> None:
    stream = Utf8Stream()
    assert stream.add(EMOJI[:cut]) == ""
    assert stream.pending
    assert stream.add(EMOJI[cut:]) == "🦦"
    assert not stream.pending


def test_an_emoji_cut_off_at_the_end_shows_nothing() -> None:
    stream = Utf8Stream()
    assert stream.add(b"Hi " + EMOJI[:3]) == "Hi "


def test_bytes_that_are_no_text_do_not_block_the_stream() -> None:
    stream = Utf8Stream()
    assert stream.add(b"\xff\xc3") == "\ufffd"
    assert stream.add(b"(ok)") == "\ufffd(ok)"


@given(st.text(), st.lists(st.integers(1, 5), max_size=40))
def test_any_cutting_gives_the_same_text(text: str, sizes: list[int]) -> None:
    raw, stream, shown = text.encode(), Utf8Stream(), ""
    for size in sizes:
        piece, raw = raw[:size], raw[size:]
        shown += stream.add(piece)
        assert "\ufffd" not in shown or "\ufffd" in text
    assert shown + stream.add(raw) == text
