"""The way into a room for a program: a line for each step, and an error that says what to do."""

from __future__ import annotations

import asyncio

from app.cli.printer import Printer
from app.cli.text import digits_text, safe
from app.cli.waiting import ENDS, until
from app.core.errors import RoomError
from app.room import intents as it
from app.room.api.events import ServedModel
from app.room.room import Room
from app.room.state import Phase, RoomState


async def enter(room: Room, where: str, name: str, printer: Printer) -> None:
    """Returns once the device is in. RoomError when it is not let in, or there is no such room."""
    steps = _Steps(printer)
    unsubscribe = room.subscribe(steps.draw)
    try:
        room.handle(it.JoinRoom(where, name, 0.0))
        state = await until(room, lambda state: state.phase.in_room or state.phase in ENDS)
    finally:
        unsubscribe()
    check(state)


async def model_of(room: Room, seconds: float) -> ServedModel:
    """The model that runs, waited for so long. RoomError when none does then."""
    try:
        async with asyncio.timeout(seconds):
            state = await until(room, lambda state: room.answers.model is not None or state.phase in ENDS)
    except TimeoutError:
        raise RoomError("No model runs in this room yet.", "Start one there, or wait longer with --wait.") from None
    check(state)
    model = room.answers.model
    if model is None:
        raise RoomError("The room has no model any more.", "Start one there.")
    return model


def check(state: RoomState) -> None:
    """Raises what the room has ended with."""
    if state.phase in ENDS:
        raise RoomError(safe(state.trouble) or "The room has ended.", safe(state.remedy))


class _Steps:
    """Each step is told once; waiting at the door stays to be read."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._said = ""

    def draw(self, state: RoomState) -> None:
        line = _step(state)
        if line and line != self._said:
            self._said = line
            (self._printer.line if state.phase is Phase.LOBBY else self._printer.status)(line)


def _step(state: RoomState) -> str:
    if state.phase is Phase.LOBBY:
        digits = f" Their screen must show {digits_text(state.digits)}." if state.digits else ""
        return f"Waiting for the room's owner to let this in.{digits}"
    return f"{safe(state.status_line)}…" if state.phase is Phase.CONNECTING and state.status_line else ""
