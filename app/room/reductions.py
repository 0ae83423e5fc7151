"""The registry of pure functions (state, event) -> state, one a kind of event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from app.room.state import RoomState

E = TypeVar("E")
Reduction = Callable[[RoomState, Any], RoomState]

REDUCTIONS: dict[type, Reduction] = {}


def reduces(
    kind: type[E],
) -> Callable[[Callable[[RoomState, E], RoomState]], Callable[[RoomState, E], RoomState]]:
    """Registers the function under it for one kind of event."""

    def register(function: Callable[[RoomState, E], RoomState]) -> Callable[[RoomState, E], RoomState]:
        REDUCTIONS[kind] = function
        return function

    return register
