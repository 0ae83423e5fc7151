"""What may be said next: forms, biases, and a budget for reasoning, with drafts and without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.room.api.steering import AskSteering, ThinkBudget

START, END, BLANK, WORD = 1, 2, 3, 4
CLOSING = (5, END, 5)


def budget(left: int, *, thinking: bool) -> ThinkBudget:
    return ThinkBudget(left, CLOSING, START, END, lambda token: token == BLANK, thinking)


def steering(left: int, *, thinking: bool) -> AskSteering:
    return AskSteering(None, {}, budget(left, thinking=thinking), 1)


def said(hand: AskSteering, *tokens: int) -> AskSteering:
    for token in tokens:
        hand.said(token)
    return hand


def allowed(hand: AskSteering, guesses: Sequence[int] = ()) -> list[list[int]]:
    shaping = hand.shaping(guesses)
    if shaping is None or shaping.masks is None:
        return []
    rows = np.unpackbits(shaping.masks.view(np.uint8), axis=1, bitorder="little")
    return [np.flatnonzero(row).tolist() for row in rows]


def test_a_used_up_budget_is_closed_word_by_word() -> None:
    hand = said(steering(2, thinking=True), WORD, WORD)
    assert hand.guesses(()) == CLOSING
    assert allowed(hand, CLOSING)[:3] == [[5], [END], [5]]
    said(hand, *CLOSING)
    assert allowed(hand) == []
    assert hand.guesses((WORD,) * 9) == (WORD,) * 9


def test_reasoning_that_ends_by_itself_is_left_alone() -> None:
    hand = said(steering(3, thinking=True), WORD, END, WORD, WORD, WORD)
    assert allowed(hand) == []


def test_an_answer_that_does_not_think_has_no_budget() -> None:
    hand = said(steering(2, thinking=False), BLANK, WORD, WORD, WORD, WORD)
    assert allowed(hand) == []


def test_the_budget_counts_from_the_opening_tag() -> None:
    hand = said(steering(2, thinking=False), BLANK, START, WORD)
    assert allowed(hand) == []
    assert allowed(said(hand, WORD)) == [[5]]


def test_no_guess_reaches_past_the_budget() -> None:
    hand = steering(4, thinking=True)
    assert hand.guesses((WORD,) * 9) == (WORD,) * 3
    said(hand, WORD, WORD, WORD)
    assert hand.guesses((WORD,) * 9) == ()
    assert hand.guesses(()) == ()
