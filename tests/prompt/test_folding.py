"""Whatever order clients send messages in, templates get one they take."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.prompt import folding
from app.prompt.ask import AskMessage, AssistantMessage, Call, ToolMessage, UserMessage
from app.prompt.folding import BESIDE, LATE_SYSTEM, Role, Said, fold, settle, with_system

CALL = Call("now", {})


def late(text: str) -> str:
    return LATE_SYSTEM.format(text=text)


CASES: dict[str, tuple[list[Said], str, list[AskMessage]]] = {
    "leading texts are joined": (
        [Said("system", "One."), Said("developer", "Two."), Said("user", "hi")],
        "One.\n\nTwo.",
        [UserMessage("hi")],
    ),
    "a late one folds into the turn before it": (
        [Said("user", "hi"), Said("system", "Be brief."), Said("assistant", "yes"), Said("user", "go on")],
        "",
        [UserMessage(f"hi\n\n{late('Be brief.')}"), AssistantMessage("yes"), UserMessage("go on")],
    ),
    "behind an answer it begins the next turn": (
        [Said("user", "hi"), Said("assistant", "yes"), Said("developer", "Be brief."), Said("user", "go on")],
        "",
        [UserMessage("hi"), AssistantMessage("yes"), UserMessage(f"{late('Be brief.')}\n\ngo on")],
    ),
    "behind results it stays beside them": (
        [Said("user", "hi"), Said("assistant", "", (CALL,)), Said("tool", "noon"), Said("system", "Be brief.")],
        "",
        [
            UserMessage("hi"),
            AssistantMessage("", (CALL,)),
            ToolMessage(f"noon\n\n{BESIDE.format(text=late('Be brief.'))}"),
        ],
    ),
    "neighbours of one role are merged": (
        [Said("user", "a"), Said("user", "b"), Said("assistant", "c"), Said("assistant", "d", (CALL,), "why")],
        "",
        [UserMessage("a\n\nb"), AssistantMessage("c\n\nd", (CALL,), "why")],
    ),
    "results are not": (
        [Said("user", "a"), Said("assistant", "", (CALL, CALL)), Said("tool", "1"), Said("tool", "2")],
        "",
        [UserMessage("a"), AssistantMessage("", (CALL, CALL)), ToolMessage("1"), ToolMessage("2")],
    ),
    "words before the results stand behind them": (
        [Said("assistant", "", (CALL,)), Said("user", "look", aside=True), Said("tool", "1"), Said("tool", "2")],
        "",
        [AssistantMessage("", (CALL,)), ToolMessage("1"), ToolMessage(f"2\n\n{BESIDE.format(text='look')}")],
    ),
    "system texts alone are the question": ([Said("system", "a"), Said("system", "b")], "", [UserMessage("a\n\nb")]),
    "nothing": ([], "", []),
}


@pytest.mark.parametrize("name", CASES)
def test_folding(name: str) -> None:
    said, system, messages = CASES[name]
    assert fold(said) == (system, tuple(messages))


ROLES: list[Role] = ["system", "developer", "user", "assistant", "tool"]
SAID = st.builds(Said, st.sampled_from(ROLES), st.sampled_from(["a", "b", ""]), aside=st.booleans())


@settings(deadline=None)
@given(st.lists(SAID, max_size=8))
def test_what_is_folded_is_settled_and_loses_nothing(said: list[Said]) -> None:
    system, messages = fold(said)
    assert settle(messages) == messages
    everything = system + "".join(message.text for message in messages)
    assert all(everything.count(letter) >= sum(s.text == letter for s in said) for letter in "ab")
    pairs = pairwise(messages)
    assert not any(type(one) is type(two) and not isinstance(one, ToolMessage) for one, two in pairs)


class CountedGap(str):
    """A gap that knows how often it joined something."""

    joined = 0

    def join(self, texts: Iterable[str], /) -> str:
        self.joined += 1
        return super().join(texts)


@pytest.mark.parametrize("message", [UserMessage("x"), UserMessage("x", aside=True), AssistantMessage("x")])
def test_neighbours_are_joined_once_however_many(message: AskMessage, monkeypatch: pytest.MonkeyPatch) -> None:
    gap = CountedGap(folding.GAP)
    monkeypatch.setattr(folding, "GAP", gap)
    assert settle([ToolMessage("y"), *[message] * 100])[-1].text.count("x") == 100
    assert gap.joined <= 2


def test_more_messages_change_no_earlier_one() -> None:
    said = [Said("user", "hi"), Said("assistant", "yes"), Said("system", "Be brief."), Said("user", "go on")]
    _, before = fold(said[:2])
    _, after = fold(said)
    assert after[:2] == before


def test_a_template_without_the_role_gets_the_system_text_in_the_first_turn() -> None:
    assert with_system("Be brief.", [UserMessage("hi")]) == (UserMessage("Be brief.\n\nhi"),)
    assert with_system("S", [AssistantMessage("a")]) == (UserMessage("S"), AssistantMessage("a"))
