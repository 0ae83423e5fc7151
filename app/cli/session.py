"""A room in a terminal: draws its states, turns lines into intents, and knows when it is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from app.cli.commands import Action, find_row, parse, usual_row
from app.cli.keyboard import Keyboard
from app.cli.printer import Printer
from app.cli.screen import Screen
from app.room import intents as it
from app.room.intents import Intent
from app.room.state import ModelRow, NoticeKind, Phase, RoomState

log = logging.getLogger(__name__)

DONE, FAILED = 0, 1
LEAVE_WITHIN_S = 5.0
ENDS = {Phase.OVER: DONE, Phase.ERROR: FAILED}
SETTLED = frozenset({Phase.ONLINE, Phase.ROOM, Phase.DEGRADED})


class RoomLike(Protocol):
    """The part of ``Room`` that a screen needs."""

    state: RoomState

    def subscribe(self, subscriber: Callable[[RoomState], None]) -> Callable[[], None]: ...

    def handle(self, intent: Intent) -> None: ...


@dataclass(frozen=True)
class AutoStart:
    """Starts ``model``, or the usual one, once ``devices`` are in the room and it fits."""

    model: str = ""
    devices: int = 1

    def row(self, state: RoomState) -> ModelRow | None:
        """The row to start now, if it is time."""
        if state.phase is not Phase.ROOM or len(state.people) < self.devices:
            return None
        row = find_row(self.model, state) if self.model else usual_row(state)
        return row if isinstance(row, ModelRow) and row.fits else None


class TerminalRoom:
    """``run`` enters a room and stays until somebody quits or the room ends; it returns the exit code.

    Piped lines are taken one after the other, each when the room is ready for it, as a person would type them.
    After their end the device stays in the room.
    """

    def __init__(self, room: RoomLike, printer: Printer, keyboard: Keyboard, auto_start: AutoStart | None) -> None:
        self._room = room
        self._printer = printer
        self._screen = Screen(printer)
        self._keyboard = keyboard
        self._auto_start = auto_start
        self._changed = asyncio.Event()

    async def run(self, entry: it.OpenRoom | it.JoinRoom | it.Reopen) -> int:
        unsubscribe = self._room.subscribe(self._drawn)
        try:
            self._room.handle(entry)
            return await _first_of({"obey lines": self._obey(), "watch for the end": self._over()})
        finally:
            unsubscribe()
            self._printer.end()

    def _drawn(self, state: RoomState) -> None:
        self._screen.draw(state)
        self._changed.set()
        # A subscriber must not change the state it is being told of.
        asyncio.get_running_loop().call_soon(self._start_by_itself)

    def _start_by_itself(self) -> None:
        row = self._auto_start.row(self._room.state) if self._auto_start else None
        if row is not None:
            self._auto_start = None
            self._room.handle(it.ChooseModel(row.key))
            self._room.handle(it.Start())

    async def _over(self) -> int:
        state = await self._until(lambda state: state.phase in ENDS)
        return ENDS[state.phase]

    async def _obey(self) -> int:
        while (line := await self._keyboard.line()) is not None:
            self._printer.typed()
            action, before = await self._when_ready(line), self._room.state
            if self._do(action):
                return DONE
            if action.asks and not self._keyboard.interactive:
                await self._until(lambda state, before=before: _taken(before, state))
        await asyncio.Event().wait()
        return DONE

    async def _when_ready(self, line: str) -> Action:
        """What a typed line means now, and what a piped one means once the room is ready for it."""
        if self._keyboard.interactive or not line.strip():
            return parse(line, self._room.state)
        await self._until(lambda state: state.phase.in_room)
        action = parse(line, self._room.state)
        if action.quits or action.asks:
            await self._until(_quiet)
        if action.asks:
            await self._until(lambda state: state.can_ask)
        if action.starts:
            await self._until(lambda state: bool(parse(line, state).intents) or state.phase.has_model)
        return parse(line, self._room.state)

    def _do(self, action: Action) -> bool:
        """Whether it was the last."""
        for intent in action.intents:
            self._room.handle(intent)
        if action.show is not None:
            self._screen.show(action.show)
        if action.wrong:
            self._printer.line(action.wrong)
        if self._room.state.live is None and not action.quits:
            self._printer.prompt()
        return action.quits

    async def _until(self, true: Callable[[RoomState], bool]) -> RoomState:
        while not true(self._room.state):
            self._changed.clear()
            await self._changed.wait()
        return self._room.state


async def leave(room: RoomLike) -> None:
    """For good: a room that was opened here ends for everybody, and cannot be gone back to."""
    left = asyncio.Event()
    unsubscribe = room.subscribe(lambda state: left.set() if state.phase is Phase.START else None)
    try:
        if room.state.phase is not Phase.START:
            room.handle(it.Leave())
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await left.wait()
    except TimeoutError:
        log.warning("the room was not left in time")
    finally:
        unsubscribe()


async def _first_of(works: dict[str, Coroutine[object, object, int]]) -> int:
    """The result of whichever ends first; the others are cancelled, as all are when this is."""
    tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _taken(before: RoomState, state: RoomState) -> bool:
    """Whether the room has answered a question with a place in the queue, an exchange or a refusal."""
    refused = any(n.kind is NoticeKind.BAD for n in state.notices if n not in before.notices)
    return len(state.transcript) > len(before.transcript) or bool(state.my_position) or refused or not state.can_ask


def _quiet(state: RoomState) -> bool:
    """No answer runs or waits, and no model is on its way."""
    return state.phase in SETTLED and state.live is None and not state.queue_length and not state.my_position
