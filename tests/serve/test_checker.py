"""What a room may say, and in which order (spec: product A-006)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.prompt.ask import Ask, Choice, Form, Tool, UserMessage
from app.prompt.limits import MOST_CALLS_READ
from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Reasoning, Words
from app.room.api.events import AskEvent, Ended, Queued, Reason, Refusal, Refused, Started, Usage
from app.serve.checker import LONGEST_TEXT, Checker
from app.serve.errors import ApiError, Problem
from tests.serve.scripted import ENDED, HELLO, STARTED, answer, call, reasoning, spoken, words

ASK = Ask((UserMessage("Hi"),), tools=(Tool("a"), Tool("b.c")), most_tokens=200)
ONLY_A = replace(ASK, form=Form(allowed=("a",)))
NAMED_A = replace(ASK, form=Form(Choice.REQUIRED, named="a"))
NO_TOOL = replace(ASK, form=Form(Choice.NONE))
A, B = call(0, "a", "{", "}"), call(1, "b.c", '{"x": [1]}')


def check(events: list[AskEvent], ask: Ask = ASK) -> None:
    checker = Checker(ask)
    for event in events:
        checker.check(event)


def test_what_may_be_said() -> None:
    check(HELLO)
    check([Queued(2), Queued(1), *answer(reasoning("Hm"), words("So", ""), A, words("\n"), B)])
    check(answer(A, call(1, "b.c", '{"cut', ended=False), ended=Ended(Reason.MOST_TOKENS)))
    check([Queued(1), Refused(Refusal.GONE, "")])
    check([STARTED, *words("x") * 216, ENDED])
    check(answer(A), ONLY_A)
    check(answer(A), NAMED_A)


@pytest.mark.parametrize(
    "events",
    [
        words("x"),
        [ENDED],
        [STARTED, STARTED],
        [STARTED, Queued(1)],
        [Queued(-1)],
        [Started("m", -1, 1)],
        [*HELLO, *words("x")],
        [*HELLO, ENDED],
        [Refused(Refusal.GONE, ""), STARTED],
        [STARTED, *words("x") * 217],
        [STARTED, *words("x" * (LONGEST_TEXT + 1))],
        [STARTED, *reasoning("x" * (LONGEST_TEXT + 1))],
        [STARTED, spoken(CallBegun(0, "a"), CallArguments(0, "x" * (LONGEST_TEXT + 1)))],
        [STARTED, spoken(*[Words("x" * LONGEST_TEXT)] * 2_049)],
        [STARTED, spoken(*[Reasoning("x" * LONGEST_TEXT)] * 2_049)],
        [STARTED, spoken(CallBegun(0, "a"), *[CallArguments(0, "x" * LONGEST_TEXT)] * 2_049)],
        answer(B),
        answer(A, A),
        answer(call(0, "c", "{}")),
        answer(call(0, "a", "{")),
        answer(call(0, "a", "[]")),
        answer(call(0, "a", "[" * 4_000)),
        [STARTED, spoken(CallArguments(0, "{}"))],
        [STARTED, spoken(CallEnded(0))],
        [STARTED, spoken(CallBegun(0, "a"), CallBegun(1, "a"))],
        [STARTED, spoken(CallBegun(0, "a"), CallArguments(1, "{}"))],
        [STARTED, spoken(CallBegun(0, "a"), Words("x"))],
        [STARTED, Ended(Reason.STOP, Usage(prompt=3, reused=4))],
        [STARTED, Ended(Reason.STOP, Usage(output=-1))],
    ],
)
def test_what_may_not(events: list[AskEvent]) -> None:
    with pytest.raises(ApiError) as caught:
        check(events)
    assert caught.value.problem is Problem.FAILED
    assert caught.value.code == "protocol"


@pytest.mark.parametrize("ask", [ONLY_A, NAMED_A, NO_TOOL])
def test_a_tool_that_may_not_be_called(ask: Ask) -> None:
    with pytest.raises(ApiError, match="not offered"):
        check(answer(call(0, "b.c", "{}")), ask)


def test_one_call_too_many() -> None:
    whole = [
        piece for i in range(MOST_CALLS_READ) for piece in (CallBegun(i, "a"), CallArguments(i, "{}"), CallEnded(i))
    ]
    check([STARTED, spoken(*whole)])
    with pytest.raises(ApiError, match="out of order"):
        check([STARTED, spoken(*whole, CallBegun(MOST_CALLS_READ, "a"))])
