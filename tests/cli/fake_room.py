"""A room that shows the states it is given and notes the intents it gets."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rich.console import Console

from app.cli.keyboard import Keyboard
from app.cli.printer import Printer
from app.room.intents import Intent
from app.room.kinds import Kind
from app.room.state import Device, Invite, ModelRow, Phase, RoomState, WaitingRequest

STARTER = ModelRow("starter", "Starter 135M", 0.3, 2, True, "fits on otter alone", on_disk=True, starter=True)
LARGE = ModelRow("large", "Large 27B", 17.8, 2, False, "15.8 GB more needed", download_bytes=16_100_000_000)
MIDDLE = ModelRow("middle", "Middle 1.7B", 1.8, 2, True, "fits on otter alone", download_bytes=1_800_000_000)
OTTER = Device("o", "otter", gb=2, me=True, creator=True)
HERON = Device("h", "heron", Kind.MAC, 4)
KNOCK = WaitingRequest("w", "wren", Kind.COMPUTER, 2, digits="123456")

IN_ROOM = RoomState(
    phase=Phase.ROOM,
    me="o",
    creator="o",
    code="4TKG9P",
    invite=Invite("4TKG9P", "http://192.168.1.20:47600/r/4TKG9P#k=KEY", has_key=True),
    devices=(OTTER,),
    rows=(STARTER, MIDDLE, LARGE),
    chosen="middle",
)
ONLINE = replace(
    IN_ROOM, phase=Phase.ONLINE, model="starter", label="Starter 135M", devices=(replace(OTTER, layers=(1, 30)),)
)


class FakeRoom:
    def __init__(self) -> None:
        self.state = RoomState()
        self.intents: list[Intent] = []
        self.react: Callable[[Intent], None] = lambda _intent: None
        self._subscribers: list[Callable[[RoomState], None]] = []

    def subscribe(self, subscriber: Callable[[RoomState], None]) -> Callable[[], None]:
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def handle(self, intent: Intent) -> None:
        self.intents.append(intent)
        self.react(intent)

    def show(self, state: RoomState) -> None:
        self.state = state
        for subscriber in list(self._subscribers):
            subscriber(state)

    def change(self, **changes: Any) -> None:
        self.show(replace(self.state, **changes))


class Typist:
    """The other end of a keyboard."""

    def __init__(self, *, interactive: bool = False) -> None:
        reading, self._writing = os.pipe()
        self.keyboard = Keyboard(reading)
        self.keyboard.interactive = interactive

    def type(self, *lines: str) -> None:
        os.write(self._writing, "".join(f"{line}\n" for line in lines).encode())

    def end(self) -> None:
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1


def printer(*, interactive: bool = False, quiet: bool = False, **options: Any) -> tuple[Printer, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=interactive, **options)
    return Printer(console, interactive=interactive, quiet=quiet), out


async def settle() -> None:
    """Time for a line to come from the keyboard's thread and be acted upon."""
    for _ in range(10):
        await asyncio.sleep(0.005)
