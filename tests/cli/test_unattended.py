"""What happens without a person: waiting, looking for a lost room, logs for programs, a quiet driver."""

from __future__ import annotations

import asyncio
import io
import json
import os
from dataclasses import replace
from typing import cast

import pytest
from rich.console import Console

from app.cli import rejoin
from app.cli.attendant import Attendant, AutoStart
from app.cli.console import is_light, make_console
from app.cli.entering import enter, model_of
from app.cli.json_log import JsonView
from app.cli.noise import kept_back
from app.cli.printer import QUIET
from app.core.errors import RoomError
from app.room import intents as it
from app.room.api.events import ServedModel
from app.room.gate import DENIED
from app.room.room import Room
from app.room.state import Exchange, Phase, RoomState
from tests.cli.fake_room import HERON, IN_ROOM, KNOCK, ONLINE, OTTER, FakeRoom, printer, settle


async def test_strangers_are_turned_away_once() -> None:
    room = FakeRoom()
    ended = Attendant(room, deny_unknown=True).attend()
    for _ in range(2):
        room.show(replace(IN_ROOM, waiting=(KNOCK, replace(KNOCK, id="w2"))))
        await settle()
    ended()
    assert room.intents == [it.Deny("w"), it.Deny("w2")]


async def test_nothing_starts_in_a_room_of_somebody_else() -> None:
    room = FakeRoom()
    attendant = Attendant(room)
    room.show(IN_ROOM)
    attendant.start_when_it_fits()
    assert room.intents == []


async def test_where_nobody_types_the_usual_model_starts() -> None:
    room = FakeRoom()
    attendant = Attendant(room, wish=AutoStart(devices=2))
    ended = attendant.attend()
    room.show(replace(IN_ROOM, devices=(OTTER, HERON)))
    await settle()
    assert room.intents == []
    attendant.start_when_it_fits()
    ended()
    assert room.intents == [it.ChooseModel("starter"), it.Start()]


async def test_a_model_and_a_context_are_chosen_once_and_started_so() -> None:
    room = FakeRoom()
    start = AutoStart("starter", context=512)
    ended = Attendant(room, wish=start).attend()
    for state in (RoomState(phase=Phase.ROOM), IN_ROOM, IN_ROOM):
        room.show(state)
        await settle()
    ended()
    assert room.intents == [it.ChooseModel("starter"), it.ChooseContext(512)]
    ended = Attendant(room, start).attend()
    room.show(IN_ROOM)
    await settle()
    ended()
    assert room.intents[-3:] == [it.ChooseModel("starter"), it.ChooseContext(512), it.Start()]


class Loss:
    """A room that ends in some way each time it is entered."""

    def __init__(self, *ways: tuple[RoomState, ...]) -> None:
        self.room, self.ways, self.entered = FakeRoom(), list(ways), 0

    async def stay(self) -> int:
        self.entered += 1
        for state in self.ways.pop(0):
            self.room.show(state)
        self.room.show(RoomState())
        return 0


LOST = (IN_ROOM, replace(IN_ROOM, phase=Phase.RECONNECTING), replace(IN_ROOM, phase=Phase.OVER, trouble="Gone."))
CLOSED = (IN_ROOM, replace(IN_ROOM, phase=Phase.OVER, trouble="The owner closed the room."))
TURNED_AWAY = (IN_ROOM, replace(IN_ROOM, phase=Phase.RECONNECTING), replace(LOST[2], trouble=DENIED))
NOT_THERE = (replace(IN_ROOM, phase=Phase.ERROR, trouble="There is no such room."),)


@pytest.mark.parametrize(
    ("ways", "entered"),
    [
        ((CLOSED,), 1),
        ((TURNED_AWAY,), 1),
        ((LOST, CLOSED), 2),
        ((LOST, NOT_THERE, LOST, CLOSED), 4),
        ((LOST, NOT_THERE, NOT_THERE, NOT_THERE), 4),
    ],
)
async def test_a_lost_room_is_looked_for(
    ways: tuple[tuple[RoomState, ...], ...], entered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejoin, "PAUSE_S", 0.0)
    loss, made = Loss(*ways), printer()[0]
    clock = iter(range(0, 10_000, 15))
    assert await rejoin.stay_for(loss.room, loss.stay, 2, made, now=lambda: float(next(clock))) == 0
    assert loss.entered == entered


async def test_entering_tells_its_steps_and_the_digits() -> None:
    room, (made, out) = FakeRoom(), printer()
    entering = asyncio.create_task(enter(cast(Room, room), "4TKG9P", "heron", made))
    await settle()
    assert room.intents == [it.JoinRoom("4TKG9P", "heron", 0.0)]
    room.show(RoomState(phase=Phase.LOBBY, digits="123456"))
    room.show(RoomState(phase=Phase.LOBBY, digits="123456", status_line="x"))
    room.show(IN_ROOM)
    await entering
    assert out.getvalue() == "Waiting for the room's owner to let this in. Their screen must show 123 456.\n"


async def test_a_room_that_cannot_be_entered_says_why() -> None:
    room = FakeRoom()
    entering = asyncio.create_task(enter(cast(Room, room), "4TKG9P", "heron", printer()[0]))
    await settle()
    room.show(RoomState(phase=Phase.ERROR, trouble="There is\x1b no such room.", remedy="Check the code."))
    with pytest.raises(RoomError, match=r"There is no such room\. Check the code\."):
        await entering


class AnsweringRoom(FakeRoom):
    def __init__(self, model: ServedModel | None) -> None:
        super().__init__()
        self.model = model

    @property
    def answers(self) -> AnsweringRoom:
        return self


async def test_a_model_is_waited_for_only_so_long() -> None:
    tiny = ServedModel("tiny", "Tiny", 2048)
    assert await model_of(cast(Room, AnsweringRoom(tiny)), 0) == tiny
    with pytest.raises(RoomError, match="--wait"):
        await model_of(cast(Room, AnsweringRoom(None)), 0)
    over = AnsweringRoom(None)
    over.show(replace(IN_ROOM, phase=Phase.OVER, trouble="The owner closed the room."))
    with pytest.raises(RoomError, match="closed"):
        await model_of(cast(Room, over), 5)


def test_a_log_for_programs_is_an_object_a_line_and_says_nothing_twice() -> None:
    out = io.StringIO()
    view = JsonView(Console(file=out))
    answer = Exchange("1", "o", "otter", "Why?\x1b[2J", "Blue.")
    for state in (IN_ROOM, IN_ROOM, ONLINE, replace(ONLINE, transcript=(replace(answer, live=True),))):
        view.draw(state)
    view.draw(replace(ONLINE, transcript=(answer,)))
    view.draw(replace(ONLINE, transcript=(answer,)))
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    names = [event["event"] for event in events]
    assert names.count("answer") == names.count("invite") == 1
    assert [event["phase"] for event in events if event["event"] == "phase"] == ["room", "online"]
    assert events[-1]["question"] == "Why?[2J"


def test_quiet_leaves_out_what_is_said_in_passing() -> None:
    made, out = printer(quiet=True)
    made.line("in passing", QUIET)
    made.line("what matters")
    assert out.getvalue() == "what matters\n"


def test_a_driver_is_heard_only_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    with kept_back() as noise:
        os.write(2, b"a driver complains\n")
    assert capfd.readouterr().err == ""
    noise.show()
    assert capfd.readouterr().err == "a driver complains\n"


@pytest.mark.parametrize(
    ("colours", "light"), [("0;15", True), ("15;0", False), ("0;default;7", True), ("", False), ("x", False)]
)
def test_the_background_is_known_from_the_environment(colours: str, light: bool) -> None:
    assert is_light(colours) == light


def test_a_dumb_terminal_keeps_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    assert make_console().width == 40
