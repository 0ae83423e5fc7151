"""What typed lines mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli.commands import HELP, Action, Show, parse
from app.room import intents as it
from app.room.state import Phase, RoomState
from tests.cli.fake_room import IN_ROOM, KNOCK, LARGE, MIDDLE, ONLINE, OTTER

WAITING = replace(IN_ROOM, waiting=(KNOCK, replace(KNOCK, id="w2")))


@pytest.mark.parametrize(
    ("line", "state", "intents"),
    [
        ("Why is the sky blue?", ONLINE, (it.Ask("Why is the sky blue?"),)),
        ("  two  words ", ONLINE, (it.Ask("two  words"),)),
        ("a", WAITING, (it.Allow("w"),)),
        ("D", WAITING, (it.Deny("w"),)),
        ("a", ONLINE, (it.Ask("a"),)),
        ("/allow", WAITING, (it.Allow("w"),)),
        ("/deny", WAITING, (it.Deny("w"),)),
        ("/start", IN_ROOM, (it.ChooseModel("starter"), it.Start())),
        ("/start mid", IN_ROOM, (it.ChooseModel("middle"), it.Start())),
        ("/START Starter 135M", IN_ROOM, (it.ChooseModel("starter"), it.Start())),
        ("/start", replace(IN_ROOM, chosen_by_hand=True), (it.ChooseModel("middle"), it.Start())),
        ("/model large", IN_ROOM, (it.ChooseModel("large"),)),
        ("/lend 2.5", IN_ROOM, (it.SetPledge(2.5),)),
        ("/new", ONLINE, (it.NewChat(),)),
        ("/stop", ONLINE, (it.Stop(),)),
        ("/again", ONLINE, (it.Regenerate(),)),
        ("/continue", ONLINE, (it.Continue(),)),
        ("/redeal", ONLINE, (it.Redeal(),)),
    ],
)
def test_a_line_is_an_intent(line: str, state: RoomState, intents: tuple[it.Intent, ...]) -> None:
    action = parse(line, state)
    assert action.intents == intents
    assert action.wrong == ""


@pytest.mark.parametrize(
    ("line", "state", "why"),
    [
        ("Hello", IN_ROOM, "/start"),
        ("/allow", IN_ROOM, "Nobody"),
        ("/strat", IN_ROOM, "/start"),
        ("/xyzzy", IN_ROOM, "/help"),
        ("/start large", IN_ROOM, "15.8 GB more needed"),
        ("/start b", IN_ROOM, "Middle 1.7B or Large 27B"),
        ("/start nothing", IN_ROOM, "/model"),
        ("/start", ONLINE, "already"),
        ("/start", replace(IN_ROOM, rows=()), "no model"),
        ("/lend much", IN_ROOM, "GB"),
        ("/lend 4", replace(IN_ROOM, devices=(replace(OTTER, holds_layers=False),)), "--gb"),
        ("/lend nan", IN_ROOM, "GB"),
        ("/lend -1", IN_ROOM, "GB"),
    ],
)
def test_a_wrong_line_says_what_to_do(line: str, state: RoomState, why: str) -> None:
    action = parse(line, state)
    assert why in action.wrong
    assert action.intents == ()


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("", Action()),
        ("   ", Action()),
        ("/devices", Action(show=Show.DEVICES)),
        ("/model", Action(show=Show.MODELS)),
        ("/invite", Action(show=Show.INVITE)),
        ("/help", Action(show=Show.HELP)),
        ("/quit", Action(quits=True)),
    ],
)
def test_other_lines(line: str, action: Action) -> None:
    assert parse(line, IN_ROOM) == action


def test_without_a_model_on_disk_the_rooms_choice_is_started() -> None:
    state = replace(IN_ROOM, rows=(MIDDLE, LARGE))
    assert parse("/start", state).intents[0] == it.ChooseModel("middle")


@pytest.mark.parametrize("command", [word.split()[0] for line in HELP for word in line.split(", ") if word[0] == "/"])
def test_every_command_of_the_help_exists(command: str) -> None:
    assert "There is no /" not in parse(command, replace(IN_ROOM, phase=Phase.ROOM)).wrong
