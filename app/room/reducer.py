"""The next state of a room's screen. Pure: the same state and event always give the same state."""

from __future__ import annotations

from app.room import reduce_chat as _chat
from app.room import reduce_devices as _devices
from app.room import reduce_entry as _entry
from app.room import reduce_model as _model
from app.room.events import Event
from app.room.reductions import REDUCTIONS
from app.room.state import RoomState

PARTS = (_entry, _devices, _model, _chat)


def reduce(state: RoomState, event: Event) -> RoomState:
    return REDUCTIONS[type(event)](state, event)
