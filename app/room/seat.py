"""A device's place in a room, the creator's or a member's: what both have of the world around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from app.core.units import GIB
from app.room import events as ev
from app.room import intents as it
from app.room.copies import Copies, NoCopies
from app.room.intents import Intent
from app.room.meta import Meta, lending
from app.room.model_side import ModelSide, SidePorts
from app.room.outside import RoomPorts, RoomTransport
from app.room.pledges import pledge_gb
from app.room.saved_room import SavedRoom
from app.room.settings import RoomSettings
from app.room.state import RoomState
from app.room.worker import Dial

COMMANDS: dict[type, str] = {
    it.Continue: "continue",
    it.Regenerate: "regen",
    it.NewChat: "new",
    it.Redeal: "redeal",
    it.StopStart: "down",
}


@dataclass(frozen=True)
class SeatPorts:
    """``leave`` ends the seat from within, ``take_over`` opens a room in its place that another device left to us."""

    outside: RoomPorts
    emit: Callable[[ev.Event], None]
    settings: RoomSettings
    leave: Callable[[], None]
    take_over: Callable[[SavedRoom], None]

    def copies(self, code: str) -> Copies:
        """Nothing is written where the person does not want it."""
        return self.outside.copies(code) if self.settings.checkpoints_on_disk else NoCopies()

    def label(self, key: str) -> str:
        record = self.outside.table.find(key)
        return record.label if record else key

    def meta(self, gb: float, *, paused: bool = False) -> Meta:
        """Without an engine, or lending nothing, this device only asks. On the wire 0 GB means: not said."""
        if self.outside.compute is None or gb <= 0:
            return replace(self.outside.meta, webgpu=False, contrib_gb=0.0, fixed_host=False)
        return lending(self.outside.meta, gb, paused=paused)

    def side(self, code: str, transport: RoomTransport, meta: Callable[[], Meta], dial: Dial) -> SidePorts:
        """What this device's model side needs in room ``code``."""
        outside = self.outside
        return SidePorts(
            clock=outside.clock,
            emit=self.emit,
            label=self.label,
            table=outside.table,
            compute=outside.compute,
            open_language=outside.open_language,
            choose=outside.choose,
            copies=lambda: self.copies(code),
            dial=dial,
            certificate=transport.certificate,
            relayed=lambda: bool(transport.relays.ice().usable),
            weights_from_room=outside.weights_from_room,
            on_disk=outside.on_disk,
            pledge=lambda: int(pledge_gb(meta()) * GIB),
        )


class Seat(Protocol):
    """What the facade does with either place."""

    @property
    def side(self) -> ModelSide | None:
        """What this device does about the model; None before it is in the room."""
        ...

    async def enter(self) -> None: ...

    def handle(self, intent: Intent, state: RoomState) -> None: ...

    def tick(self) -> None: ...

    async def close(self, *, final: bool) -> None:
        """``final``: the person left; else the program ends and may come back."""
        ...


def talk_to_model(side: ModelSide, intent: Intent) -> None:
    """What a person says to whichever device runs the model."""
    match intent:
        case it.Ask():
            side.ask(intent.text)
        case it.Stop():
            side.stop()
        case it.Typing():
            side.typing()
        case _ if type(intent) in COMMANDS:
            side.command(COMMANDS[type(intent)])
        case _:
            pass
