"""Words end at a stop sequence, whole or in pieces; nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.prompt.pieces import CallBegun, Reasoning, Words
from app.prompt.stops import StopFilter


def run(stops: list[str], parts: list[str]) -> tuple[str, str | None]:
    stop = StopFilter(stops)
    pieces = [piece for part in parts for piece in stop.add([Words(part)])]
    return "".join(piece.text for piece in [*pieces, *stop.end()] if isinstance(piece, Words)), stop.hit


CASES = [
    ([], "abc", "abc", None),
    ([""], "abc", "abc", None),
    (["END"], "a END b", "a ", "END"),
    (["END"], "a EN", "a EN", None),
    (["aab"], "aaab", "a", "aab"),
    (["abcd", "bc"], "abcd", "a", "bc"),
    (["c", "bc"], "abcd", "a", "bc"),
    (["x", "\n\n"], "a\n\nx", "a", "\n\n"),
    (["🦦"], "ab🦦c", "ab", "🦦"),
    (["abab"], "ababab", "", "abab"),
]


@pytest.mark.parametrize(("stops", "text", "words", "hit"), CASES)
def test_words_end_there(stops: list[str], text: str, words: str, hit: str | None) -> None:
    assert run(stops, [text]) == (words, hit)
    assert run(stops, list(text)) == (words, hit)


SHORT = st.text("ab", min_size=1, max_size=4)


@settings(deadline=None)
@given(st.lists(SHORT, max_size=4), st.lists(SHORT, max_size=8))
def test_any_cutting_ends_at_the_same_place(stops: list[str], parts: list[str]) -> None:
    whole = "".join(parts)
    words, hit = run(stops, parts)
    assert (words, hit) == run(stops, [whole])
    assert (hit is None) == (not any(stop in whole for stop in stops))
    assert whole.startswith(words + (hit or ""))
    assert not any(stop in words for stop in stops)


def test_only_as_much_is_held_back_as_could_become_one() -> None:
    stop = StopFilter(["END"])
    assert stop.add([Words("see E")]) == (Words("see "),)
    assert stop.add([Words("ND")]) == ()
    assert stop.hit == "END"
    assert stop.add([Words("more"), CallBegun(0, "read")]) == ()


def test_reasoning_and_calls_are_not_searched_and_stay_in_their_place() -> None:
    stop = StopFilter(["END"])
    assert stop.add([Reasoning("the END"), Words("E"), CallBegun(0, "END"), Words("ND")]) == (
        Reasoning("the END"),
        Words("E"),
        CallBegun(0, "END"),
        Words("ND"),
    )
    assert stop.hit is None
