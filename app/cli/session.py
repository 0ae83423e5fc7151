"""A room in a terminal: draws its states, turns lines into intents, and knows when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from app.cli.attendant import Attendant
from app.cli.commands import Action, parse
from app.cli.ending import DONE
from app.cli.keyboard import Keyboard
from app.cli.printer import Printer
from app.cli.screen import Screen, View
from app.cli.waiting import ENDS, RoomLike, until
from app.room import intents as it
from app.room.state import NoticeKind, Phase, RoomState

SETTLED = frozenset({Phase.ONLINE, Phase.ROOM, Phase.DEGRADED})

Entry = it.OpenRoom | it.JoinRoom | it.Reopen


class TerminalRoom:
    """``run`` enters a room and stays until somebody quits or the room ends; it returns the exit code.

    Piped lines are taken one after the other, each when the room is ready for it, as a person would type them.
    After their end the device stays in the room.
    """

    def __init__(
        self, room: RoomLike, printer: Printer, keyboard: Keyboard, attendant: Attendant, view: View | None = None
    ) -> None:
        self._room = room
        self._printer = printer
        self._view = view or Screen(printer)
        self._keyboard = keyboard
        self._attendant = attendant

    async def run(self, entry: Entry | None) -> int | None:
        """``entry`` None: the device is in the room already. None when the panel is wanted."""
        unsubscribe = self._room.subscribe(self._view.draw)
        try:
            if entry is not None:
                self._room.handle(entry)
            else:
                self._view.draw(self._room.state)
            return await first_of({"obey lines": self._obey(), "watch for the end": over(self._room)})
        finally:
            unsubscribe()
            self._printer.end()

    async def _obey(self) -> int | None:
        silent = True
        while (line := await self._keyboard.line()) is not None:
            silent = False
            self._printer.typed()
            action, before = await self._when_ready(line), self._room.state
            if self._do(action):
                return DONE
            if action.panel and self._keyboard.interactive:
                return None
            if action.asks and not self._keyboard.interactive:
                await self._until(lambda state, before=before: _taken(before, state))
        if silent:
            self._attendant.start_when_it_fits()
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
            self._view.show(action.show)
        if action.wrong:
            self._printer.line(action.wrong)
        if self._room.state.live is None and not action.quits:
            self._printer.prompt()
        return action.quits

    async def _until(self, true: Callable[[RoomState], bool]) -> RoomState:
        return await until(self._room, true)


async def over(room: RoomLike) -> int:
    """The exit code, once the room has ended."""
    state = await until(room, lambda state: state.phase in ENDS)
    return ENDS[state.phase]


async def first_of(works: dict[str, Coroutine[object, object, int | None]]) -> int | None:
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
