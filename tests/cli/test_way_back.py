"""Which room ``pooled host`` opens, and leaving it for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cli.waiting import leave
from app.cli.way_back import way_back
from app.room import intents as it
from app.room.intents import Intent
from app.room.state import Offer, Phase, RoomState
from tests.cli.fake_room import IN_ROOM, FakeRoom, Typist, printer, settle

CODE = "4TKG9P"
OWN, NOW = Offer(CODE, owner=True), Offer(CODE, owner=True, straight_back=True)
ROOT = Path(__file__).parents[2]


async def chosen(offer: Offer | None, *typed: str, again: bool = False, tty: bool = False) -> tuple[object, str]:
    typist = Typist(interactive=tty)
    made, out = printer(interactive=tty)
    typist.type(*typed)
    try:
        return await way_back(offer, made, typist.keyboard, again=again), out.getvalue()
    finally:
        typist.end()
        await settle()


@pytest.mark.parametrize(("offer", "again"), [(NOW, False), (OWN, True), (NOW, True)])
async def test_a_room_of_a_moment_ago_or_asked_for_opens_at_once(offer: Offer, again: bool) -> None:
    assert await chosen(offer, again=again) == (it.Reopen(), "")


@pytest.mark.parametrize(("answer", "intent"), [("y", it.Reopen()), ("", None), ("no", None)])
async def test_an_older_room_is_asked_about(answer: str, intent: Intent | None) -> None:
    went, said = await chosen(OWN, answer, tty=True)
    assert went == intent
    assert "Room 4TK-G9P was open here" in said


async def test_without_a_person_a_line_says_how() -> None:
    went, said = await chosen(OWN)
    assert went is None
    assert "--again" in said


@pytest.mark.parametrize("offer", [None, Offer(CODE, owner=False, straight_back=True)])
async def test_only_own_rooms_are_opened(offer: Offer | None) -> None:
    assert await chosen(offer) == (None, "")
    went, said = await chosen(offer, again=True)
    assert went is None
    assert "no room to open again" in said


async def test_leaving_waits_until_the_room_is_left() -> None:
    room = FakeRoom()
    room.show(IN_ROOM)
    room.react = lambda intent: room.show(RoomState()) if isinstance(intent, it.Leave) else None
    await leave(room)
    assert room.intents == [it.Leave()]
    assert room.state.phase is Phase.START
    await leave(room)
    assert room.intents == [it.Leave()]


def ended(home: Path, by: signal.Signals) -> str:
    """What a terminal said that opened a room and was ended by a signal."""
    command = [sys.executable, "-m", "app", "host", "--no-fetch", "--gb", "0", "--signal", "127.0.0.1:9"]
    environment = {**os.environ, "POOLED_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    out = home / "said"
    with (
        out.open("w") as stream,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=stream, stderr=stream, env=environment, cwd=ROOT
        ) as process,
    ):
        for _ in range(600):
            if "\nRoom " in out.read_text() or process.poll() is not None:
                break
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(by)
        assert process.wait(30) == 0, out.read_text()
    return out.read_text()


def code_in(said: str) -> str:
    return next(line for line in said.splitlines() if line.startswith("Room "))[:12]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
def test_a_stopped_terminal_comes_back_to_its_room_and_one_left_does_not(tmp_path: Path) -> None:
    first = ended(tmp_path, signal.SIGTERM)
    again = ended(tmp_path, signal.SIGINT)
    assert code_in(again) == code_in(first)
    assert code_in(ended(tmp_path, signal.SIGINT)) != code_in(first)
