"""A terminal room against a made-up room."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from app.cli.attendant import Attendant, AutoStart
from app.cli.session import TerminalRoom
from app.room import intents as it
from app.room.state import Exchange, Notice, NoticeKind, Phase
from tests.cli.fake_room import HERON, IN_ROOM, KNOCK, LARGE, ONLINE, OTTER, FakeRoom, Typist, printer, settle

OPEN = it.OpenRoom("otter", 2)


class Terminal:
    """One terminal room at work; the end of the block takes it down."""

    def __init__(
        self, *, interactive: bool = False, auto_start: AutoStart | None = None, wish: AutoStart | None = None
    ) -> None:
        self.room, self.typist = FakeRoom(), Typist(interactive=interactive)
        made, self.out = printer(interactive=interactive)
        self.attendant = Attendant(self.room, auto_start, wish=auto_start or wish)
        self._terminal = TerminalRoom(self.room, made, self.typist.keyboard, self.attendant)
        self.task: asyncio.Task[int | None]

    async def __aenter__(self) -> Terminal:
        self._unattended = self.attendant.attend()
        self.task = asyncio.create_task(self._terminal.run(OPEN))
        await settle()
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._unattended()
        self.task.cancel()
        await asyncio.wait([self.task])
        self.typist.end()
        await settle()

    def asked(self) -> list[str]:
        return [intent.text for intent in self.room.intents if isinstance(intent, it.Ask)]

    def exchange(self, question: str, *, live: bool, answer: str = "") -> None:
        before = [item for item in self.room.state.transcript if item.question != question]
        item = Exchange(question, "o", "otter", question, answer, live=live)
        phase = Phase.ANSWERING if live else Phase.ONLINE
        self.room.change(phase=phase, transcript=(*before, item))


async def test_it_enters_draws_and_leaves() -> None:
    async with Terminal(interactive=True) as terminal:
        assert terminal.room.intents == [OPEN]
        terminal.room.show(IN_ROOM)
        assert "4TK-G9P" in terminal.out.getvalue()
        terminal.typist.type("/quit")
        assert await terminal.task == 0


async def test_the_letter_a_lets_the_first_one_in() -> None:
    async with Terminal(interactive=True) as terminal:
        terminal.room.show(replace(IN_ROOM, waiting=(KNOCK,)))
        assert "123 456" in terminal.out.getvalue()
        terminal.typist.type("a")
        await settle()
        assert terminal.room.intents[1:] == [it.Allow("w")]


@pytest.mark.parametrize(("phase", "code"), [(Phase.OVER, 0), (Phase.ERROR, 1)])
async def test_it_ends_with_the_room(phase: Phase, code: int) -> None:
    async with Terminal() as terminal:
        terminal.room.show(replace(IN_ROOM, phase=phase, trouble="The room is gone.", remedy="Open another."))
        assert await terminal.task == code
        assert "The room is gone. Open another." in terminal.out.getvalue()


async def test_piped_lines_wait_until_the_room_is_ready() -> None:
    async with Terminal() as terminal:
        terminal.typist.type("/start starter", "one", "two", "/quit")
        terminal.typist.end()
        await settle()
        assert terminal.room.intents == [OPEN]
        terminal.room.show(IN_ROOM)
        await settle()
        assert terminal.room.intents[1:] == [it.ChooseModel("starter"), it.Start()]
        terminal.room.change(phase=Phase.STARTING)
        await settle()
        assert terminal.asked() == []
        terminal.room.show(ONLINE)
        await settle()
        assert terminal.asked() == ["one"]
        terminal.exchange("one", live=True)
        await settle()
        assert terminal.asked() == ["one"]
        terminal.exchange("one", live=False)
        await settle()
        assert terminal.asked() == ["one", "two"]
        assert not terminal.task.done()
        terminal.exchange("two", live=True)
        terminal.exchange("two", live=False)
        assert await terminal.task == 0


async def test_a_refused_question_does_not_hold_up_the_next() -> None:
    async with Terminal() as terminal:
        terminal.room.show(ONLINE)
        terminal.typist.type("one", "two")
        await settle()
        terminal.room.change(notices=(Notice(1, "Too long.", kind=NoticeKind.BAD),))
        await settle()
        assert terminal.asked() == ["one", "two"]


async def test_the_end_of_a_pipe_leaves_the_device_in_the_room() -> None:
    async with Terminal() as terminal:
        terminal.room.show(IN_ROOM)
        terminal.typist.end()
        await settle()
        assert not terminal.task.done()


async def test_a_question_without_a_model_is_answered_by_the_terminal() -> None:
    async with Terminal(interactive=True) as terminal:
        terminal.room.show(IN_ROOM)
        terminal.typist.type("Hello?")
        await settle()
        assert terminal.asked() == []
        assert "/start" in terminal.out.getvalue()


async def test_it_starts_by_itself_once_enough_devices_are_there_and_it_fits() -> None:
    async with Terminal(auto_start=AutoStart("large", 2)) as terminal:
        fitting = (replace(LARGE, fits=True),)
        terminal.room.show(replace(IN_ROOM, devices=(OTTER,), rows=fitting))
        await settle()
        terminal.room.change(devices=(OTTER, HERON), rows=(LARGE,))
        await settle()
        assert terminal.room.intents == [OPEN, it.ChooseModel("large")]
        terminal.room.change(rows=fitting)
        terminal.room.change(status_line="again")
        await settle()
        assert terminal.room.intents[2:] == [it.ChooseModel("large"), it.Start()]


async def test_a_broken_pipe_of_bytes_is_only_text() -> None:
    typist = Typist()
    typist.type("caf\u00e9 \udcff".encode("utf-8", "surrogateescape").decode("latin-1"))
    writing = asyncio.create_task(asyncio.to_thread(typist.type, "x" * 200_000))
    lines: list[Any] = [await asyncio.wait_for(typist.keyboard.line(), 5) for _ in range(2)]
    await writing
    typist.end()
    lines.append(await asyncio.wait_for(typist.keyboard.line(), 5))
    assert len(lines[1]) <= 64 * 1024
    assert lines[2] is None
