"""What a key means on the room panel (spec: product §4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from app.cli.commands import ONLY_ASKS, only_asks
from app.cli.panel import chosen_row
from app.room import intents as it
from app.room.intents import Intent
from app.room.planner import SplitMode
from app.room.state import Phase, RoomState


class Opens(Enum):
    """What the panel asks next, or does itself."""

    MODELS = "models"
    AMOUNT = "amount"
    CHAT = "chat"
    LINK = "link"
    QUIT = "quit"


@dataclass(frozen=True)
class Pressed:
    """``note`` says what was done, or why nothing was."""

    intents: tuple[Intent, ...] = ()
    opens: Opens | None = None
    note: str = ""


_OPENS = {"c": Opens.CHAT, "i": Opens.LINK, "q": Opens.QUIT, "end": Opens.QUIT}
_BEFORE_START = frozenset({Phase.ROOM, Phase.DEGRADED})


def press(key: str, state: RoomState) -> Pressed:
    """A key that means nothing now does nothing."""
    key = key.lower()
    if key in _OPENS:
        return Pressed(opens=_OPENS[key])
    if key in ("a", "d"):
        return _door(allow=key == "a", state=state)
    if key in ("p", "l"):
        return Pressed(note=ONLY_ASKS) if only_asks(state) else Pressed(opens=Opens.AMOUNT)
    if key == "r" and state.phase.has_model:
        return Pressed((it.Redeal(),), note="Dealing the layers again.")
    if state.phase not in _BEFORE_START:
        return Pressed()
    return _before_start(key, state)


def _before_start(key: str, state: RoomState) -> Pressed:
    match key:
        case "enter":
            return _start(state)
        case "m":
            return Pressed(opens=Opens.MODELS)
        case "s":
            return _other_split(state)
        case _:
            return Pressed()


def _start(state: RoomState) -> Pressed:
    row = chosen_row(state)
    if row is None:
        return Pressed(note="There is no model to start here.")
    if not row.fits:
        return Pressed(note=f"{row.label}: {row.sentence}.")
    return Pressed((it.Start(),))


def _other_split(state: RoomState) -> Pressed:
    if not state.i_am_creator:
        return Pressed(note="Only the room's owner says how layers are split.")
    other = SplitMode.MEMORY if state.settings.split is SplitMode.SPEED else SplitMode.SPEED
    words = "spread over all devices" if other is SplitMode.MEMORY else "dealt for speed"
    return Pressed((it.ChangeSettings(replace(state.settings, split=other)),), note=f"Layers are {words}.")


def _door(*, allow: bool, state: RoomState) -> Pressed:
    if not state.waiting:
        return Pressed(note="Nobody is waiting to be let in.")
    verdict = it.Allow if allow else it.Deny
    return Pressed((verdict(state.waiting[0].id),))
