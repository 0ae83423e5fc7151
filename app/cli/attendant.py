"""What a room's owner has said beforehand is done by itself: start when it fits, turn strangers away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from app.cli.commands import find_row, usual_row
from app.cli.waiting import RoomLike
from app.room import intents as it
from app.room.intents import Intent
from app.room.state import ModelRow, Phase, RoomState


@dataclass(frozen=True)
class AutoStart:
    """Starts ``model``, or the usual one, once ``devices`` are in the room and it fits.

    ``context`` in tokens, 0 leaves it to the room.
    """

    model: str = ""
    devices: int = 1
    context: int = 0

    def row(self, state: RoomState) -> ModelRow | None:
        """The row to start now, if it is time."""
        if state.phase is not Phase.ROOM or len(state.people) < self.devices:
            return None
        row = self.meant(state)
        return row if row is not None and row.fits else None

    def meant(self, state: RoomState) -> ModelRow | None:
        """The row that is to be started some time."""
        row = find_row(self.model, state) if self.model else usual_row(state)
        return row if isinstance(row, ModelRow) else None

    def choice(self, row: ModelRow) -> tuple[Intent, ...]:
        """A model chosen takes its own context, so the one asked for comes after it."""
        context = (it.ChooseContext(self.context),) if self.context else ()
        return it.ChooseModel(row.key), *context


class Attendant:
    """``start`` None starts nothing, until ``start_when_it_fits`` is called."""

    def __init__(
        self,
        room: RoomLike,
        start: AutoStart | None = None,
        *,
        deny_unknown: bool = False,
        wish: AutoStart | None = None,
    ) -> None:
        """``wish``: what is started where nobody can say when; None leaves that to others."""
        self._room = room
        self._start = start
        self._wish = start or wish
        self._deny = deny_unknown
        self._denied: set[str] = set()
        self._chosen = self._wish is None or not (self._wish.model or self._wish.context)

    def attend(self) -> Callable[[], None]:
        """Returns the function that ends it."""
        return self._room.subscribe(self._soon)

    def _soon(self, _state: RoomState) -> None:
        # A subscriber must not change the state it is being told of.
        asyncio.get_running_loop().call_soon(self._act)

    def start_when_it_fits(self) -> None:
        """Nobody is there to say when."""
        self._start = self._wish
        self._act()

    def _act(self) -> None:
        self._turn_away()
        self._choose()
        start, state = self._start, self._room.state
        row = start.row(state) if start else None
        if start is not None and row is not None:
            self._start = None
            self._handle(*start.choice(row), it.Start())

    def _choose(self) -> None:
        """Once there are models to choose from; what a person then chooses stays."""
        state, wish = self._room.state, self._wish
        row = wish.meant(state) if wish and not self._chosen and state.phase is Phase.ROOM else None
        if wish is not None and row is not None:
            self._chosen = True
            self._handle(*wish.choice(row))

    def _handle(self, *intents: Intent) -> None:
        for intent in intents:
            self._room.handle(intent)

    def _turn_away(self) -> None:
        for request in self._room.state.waiting if self._deny else ():
            if request.id not in self._denied:
                self._denied.add(request.id)
                self._room.handle(it.Deny(request.id))
