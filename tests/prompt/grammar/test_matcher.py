"""Masks, drafts and copies of one answer's place in its grammar."""

from __future__ import annotations

import numpy as np
import pytest
from llguidance import LLMatcher
from numpy.typing import NDArray

from app.core.errors import PromptError
from app.engine.ops.mask import words_of
from app.prompt.ask import Ask, Choice, Form, JsonFormat, Tool, UserMessage
from app.prompt.grammar.cache import Compiled
from app.prompt.grammar.constraint import constraint
from app.prompt.grammar.matcher import Matcher
from app.prompt.grammar.style import CallStyle, ThinkState
from app.prompt.grammar.vocabulary import vocabulary
from tests.prompt.grammar.words import FULL, SIZE, STOPS, WORDS, SmallTokenizer, matcher

END, OTHER_END = STOPS.values()
TOOL = Tool("now")


def allowed(row: NDArray[np.uint32]) -> set[int]:
    return {token for token in range(32 * len(row)) if row[token // 32] >> np.uint32(token % 32) & 1}


def required() -> Matcher:
    return matcher(TOOL, form=Form(Choice.REQUIRED, parallel=False))


def test_free_text_holds_no_special_token_and_no_padding() -> None:
    free = allowed(matcher(TOOL).mask())
    assert set(range(128)) <= free
    assert free - set(range(280)) == {END, OTHER_END, FULL.special("<tool_call>")}
    assert 256 + 13 not in free


def test_a_mask_has_the_form_of_the_engine() -> None:
    row = required().mask()
    assert row.dtype == np.uint32
    assert row.shape == (words_of(SIZE),)
    assert max(allowed(row)) < SIZE


def test_masks_of_drafts_are_those_of_the_places_they_lead_to() -> None:
    found = required()
    answer = [*FULL.ids('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'), END]
    rows = found.masks(answer)
    for row, token in zip(rows, answer, strict=False):
        assert np.array_equal(found.mask(), row)
        assert token in allowed(row)
        found.accept(token)
    assert found.done
    assert rows[-1].min() == 0xFFFFFFFF
    assert np.array_equal(found.mask(), rows[-1])


def test_drafts_change_nothing() -> None:
    found = required()
    before = found.mask()
    assert found.valid(FULL.ids("<tool_call>\nx")) == 2
    found.masks(FULL.ids("<tool_call>\nx"))
    assert np.array_equal(found.mask(), before)


def test_a_copy_goes_its_own_way() -> None:
    found = required()
    copy = found.copy()
    copy.accept(FULL.ids("<tool_call>")[0])
    assert found.valid(FULL.ids("<tool_call>")) == 1
    assert copy.valid(FULL.ids("<tool_call>")) == 0


def test_what_is_certain_is_told_ahead() -> None:
    found = required()
    found.accept(FULL.ids("<tool_call>")[0])
    ahead = found.forced()
    assert FULL.text(list(ahead)).startswith('\n{"name": "now"')
    assert found.valid(ahead) == len(ahead)


@pytest.mark.parametrize("end", [END, OTHER_END])
def test_every_stop_id_ends_an_answer(end: int) -> None:
    found = matcher(form=Form(format=JsonFormat()))
    for token in FULL.ids("{}"):
        assert not found.complete
        found.accept(token)
    assert found.complete
    found.accept(end)
    assert found.done
    assert found.valid([1, 2, 3]) == 3
    assert found.forced() == ()
    found.accept(5)


def test_a_stop_id_within_drafts() -> None:
    found = matcher(form=Form(format=JsonFormat()))
    assert found.valid([*FULL.ids("{}"), END, 7, 8]) == 5
    assert found.valid([*FULL.ids("{"), END, 7, 8]) == 1


def test_a_token_that_may_not_follow_is_an_error() -> None:
    found = required()
    with pytest.raises(PromptError, match="left the form"):
        found.accept(FULL.ids("x")[0])
    with pytest.raises(PromptError):
        found.mask()


def test_the_second_turn_compiles_nothing() -> None:
    words = vocabulary(FULL, SIZE)
    first, second = (Ask((UserMessage(text),), tools=(TOOL,)) for text in ("hi", "and then?"))
    for ask in (first, second, first):
        assert constraint(words, ask, CallStyle.JSON, ThinkState.OPEN)
    assert words.compiled.count == 1
    assert constraint(words, first, CallStyle.XML, ThinkState.OPEN)
    assert words.compiled.count == 2


def test_old_grammars_are_forgotten() -> None:
    kept = Compiled(most=2)
    for name in ("a", "b", "a", "c", "a", "b"):
        kept.get(name, lambda: LLMatcher(WORDS[FULL].library, 'start: "a"'))
    assert kept.count == 4


def test_a_model_without_an_end_is_refused() -> None:
    with pytest.raises(PromptError, match="no token that ends"):
        vocabulary(SmallTokenizer(stop_ids=frozenset()), SIZE)


def test_tags_are_found_by_name() -> None:
    assert set(WORDS[FULL].tags) == {"<think>", "</think>", "<tool_call>", "</tool_call>"}
