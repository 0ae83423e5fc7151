"""Entries of a conversation become messages (spec: product A-030)."""

from __future__ import annotations

import pytest

from app.prompt.ask import AssistantMessage, Call, ToolMessage, UserMessage
from app.prompt.folding import BESIDE, LATE_SYSTEM
from app.serve.conversation import AssistantEntry, Entry, ResultEntry, SystemEntry, UserEntry, arguments_of, fold
from app.serve.errors import ApiError

HALF = r'{"id": "\ud83d"}'
HI, YES = UserEntry("Hi"), AssistantEntry("Yes")


def test_leading_system_texts_join_and_late_ones_go_to_a_users_turn() -> None:
    entries: list[Entry] = [
        SystemEntry("a"),
        SystemEntry(""),
        SystemEntry("b"),
        HI,
        SystemEntry("c"),
        YES,
        SystemEntry("d"),
    ]
    system, messages = fold(entries)
    assert system == "a\n\nb"
    late = [UserMessage(LATE_SYSTEM.format(text=text)) for text in "cd"]
    assert messages == (UserMessage(f"Hi\n\n{late[0].text}"), AssistantMessage("Yes"), late[1])


def test_neighbours_of_one_speaker_merge() -> None:
    one, two = Call("a", {}), Call("b", {})
    made = [AssistantEntry(reasoning="Hm"), AssistantEntry("Yes", (("1", one),)), AssistantEntry("so", (("2", two),))]
    _, messages = fold([HI, UserEntry("there"), *made, HI])
    said = AssistantMessage("Yes\n\nso", (one, two), "Hm")
    assert messages == (UserMessage("Hi\n\nthere"), said, UserMessage("Hi"))


def test_results_follow_their_calls() -> None:
    made = AssistantEntry("", (("x", Call("a", {})), ("y", Call("b", {}))))
    results = [ResultEntry("?", "3"), ResultEntry("y", "2"), ResultEntry("x", "1")]
    _, messages = fold([HI, made, *results, SystemEntry("note"), UserEntry("also", aside=True)])
    assert messages[2:4] == (ToolMessage("1"), ToolMessage("2"))
    beside = [BESIDE.format(text=text) for text in (LATE_SYSTEM.format(text="note"), "also")]
    assert messages[4] == ToolMessage("\n\n".join(["3", *beside]))
    assert len(messages) == 5


def test_a_new_question_beside_an_aside_is_a_question() -> None:
    _, messages = fold([HI, ResultEntry("", "1"), UserEntry("note", aside=True), UserEntry("Why?")])
    assert messages[-2:] == (ToolMessage(f"1\n\n{BESIDE.format(text='note')}"), UserMessage("Why?"))


@pytest.mark.parametrize("entries", [[], [HI, YES], [HI, YES] * 501 + [HI]])
def test_conversations_nobody_can_answer(entries: list[Entry]) -> None:
    with pytest.raises(ApiError):
        fold(entries)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (" ", {}),
        ('{"a"', {"arguments": '{"a"'}),
        ("[1]", {"arguments": "[1]"}),
        (HALF, {"arguments": HALF}),
        ('{"a": NaN}', {"arguments": '{"a": NaN}'}),
    ],
)
def test_arguments_as_clients_give_them_back(text: str, arguments: dict[str, object]) -> None:
    assert arguments_of(text) == arguments
