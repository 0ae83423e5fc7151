"""Waiting for a room to become something, and leaving it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from app.cli.ending import DONE, FAILED
from app.room import intents as it
from app.room.intents import Intent
from app.room.state import Phase, RoomState

log = logging.getLogger(__name__)

LEAVE_WITHIN_S = 5.0
ENDS = {Phase.OVER: DONE, Phase.ERROR: FAILED}
"""Phases after which nothing follows by itself, and the exit code of each."""


class RoomLike(Protocol):
    """The part of ``Room`` that a screen needs."""

    state: RoomState

    def subscribe(self, subscriber: Callable[[RoomState], None]) -> Callable[[], None]: ...

    def handle(self, intent: Intent) -> None: ...


async def until(room: RoomLike, true: Callable[[RoomState], bool]) -> RoomState:
    """The first state that is so, which may be the present one."""
    changed = asyncio.Event()
    unsubscribe = room.subscribe(lambda _state: changed.set())
    try:
        while not true(room.state):
            changed.clear()
            await changed.wait()
        return room.state
    finally:
        unsubscribe()


async def leave(room: RoomLike) -> None:
    """For good: a room that was opened here ends for everybody, and cannot be gone back to."""
    if room.state.phase is Phase.START:
        return
    room.handle(it.Leave())
    try:
        async with asyncio.timeout(LEAVE_WITHIN_S):
            await until(room, lambda state: state.phase is Phase.START)
    except TimeoutError:
        log.warning("the room was not left in time")
