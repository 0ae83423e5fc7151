"""Markdown as blocks: safe, and the same in slices as in one go."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from app.ui.gallery_texts import EVERYTHING
from app.ui.highlight import coloured_spans
from app.ui.markdown import GrowingMarkdown, portions
from app.ui.widgets.slices import Slices


def whole(text: str) -> list[object]:
    return list(GrowingMarkdown().blocks(text))


def grown(text: str, step: int) -> list[object]:
    growing = GrowingMarkdown()
    for end in range(step, len(text), step):
        growing.blocks(text[:end])
    return list(growing.blocks(text))


def test_text_that_grows_ends_as_the_whole() -> None:
    for step in (1, 7, 40):
        assert grown(EVERYTHING, step) == whole(EVERYTHING)


PIECES = st.sampled_from(["word ", "\n", "\n\n", "- item\n", "```\n", "# head\n", "| a | b |\n", "> quote\n", "**b** "])


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=24).map("".join), st.integers(1, 9))
def test_no_text_breaks_the_growing_parser(text: str, step: int) -> None:
    code = [block for block in GrowingMarkdown().blocks(text) if block.code]
    assert all("<p>" not in block.text for block in code)
    grown(text, step)


def test_a_text_that_is_replaced_starts_anew() -> None:
    growing = GrowingMarkdown()
    growing.blocks("One.\n\nTwo.\n\nThree.")
    assert growing.blocks("Other.") == whole("Other.")


def test_markup_of_a_model_stays_text_and_pictures_are_not_fetched() -> None:
    blocks = GrowingMarkdown().blocks(
        '<script>alert("no")</script>\n\n![x](http://example.org/a.png) [y](javascript:z)'
    )
    text = "".join(block.text for block in blocks)
    assert "<script" not in text
    assert "<img" not in text
    assert "javascript:" not in text.replace("(javascript:z)", "")


def test_code_keeps_its_language_and_its_lines() -> None:
    (block,) = GrowingMarkdown().blocks("```rust\nlet a = 1;\n\nlet b = 2;\n```")
    assert (block.code, block.language, block.text) == (True, "rust", "let a = 1;\n\nlet b = 2;")


def test_portions_grow_and_end_whole() -> None:
    text = "line of text\n" * 2000
    parts = list(portions(text))
    assert len(parts) > 4
    assert parts[-1] == text
    assert all(b.startswith(a) for a, b in itertools.pairwise(parts))


def test_unknown_languages_and_huge_listings_stay_plain() -> None:
    assert list(coloured_spans("a = 1", "klingon")) == []
    assert list(coloured_spans("a = 1\n" * 20_000, "python")) == []
    assert list(coloured_spans("def a(): pass", "python"))


def test_slices_run_in_order_and_stop_when_done(qtbot: object) -> None:
    slices, done = Slices(), list[str]()

    def work(name: str, steps: int):
        for _ in range(steps):
            yield
        done.append(name)

    slices.add(work("long", 50))
    slices.add(work("short", 1))
    slices.drain()
    assert done == ["long", "short"]
    assert not slices.busy
