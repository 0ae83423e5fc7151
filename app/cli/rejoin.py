"""A device whose room lost its owner looks for it again for some minutes (spec: product T-022)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from app.cli.ending import DONE
from app.cli.printer import Printer
from app.cli.waiting import RoomLike
from app.room.gate import DENIED
from app.room.state import Phase, RoomState

PAUSE_S = 5.0
Stay = Callable[[], Awaitable[int]]


class LossWatch:
    """Notes how the room was last seen."""

    def __init__(self) -> None:
        self.lost = False
        self._before = Phase.START

    def draw(self, state: RoomState) -> None:
        """Lost: the owner could not be reached any more, and did not say that the room ends."""
        if state.phase is Phase.OVER and self._before is not Phase.OVER:
            self.lost = self._before is Phase.RECONNECTING and state.trouble != DENIED
        elif state.phase.in_room:
            self.lost = False
        self._before = state.phase


async def stay_for(
    room: RoomLike, stay: Stay, minutes: float, printer: Printer, now: Callable[[], float] = time.monotonic
) -> int:
    """``stay`` enters the room and returns once it is over; again while its owner is only lost."""
    watch = LossWatch()
    unsubscribe = room.subscribe(watch.draw)
    try:
        code, since = await stay(), now()
        while watch.lost and now() - since < minutes * 60:
            printer.line("The room's owner is gone; looking for the room again.")
            await asyncio.sleep(PAUSE_S)
            began = now()
            code = await stay()
            # In the room again for a while: the minutes begin anew.
            since = now() if now() - began > minutes * 60 else since
        return DONE if watch.lost else code
    finally:
        unsubscribe()
