"""Listens for rooms on the network while the start screen is up, and only then."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.room.near import NearbyRoom
from app.room.nearby import Nearby
from app.room.state import Phase, RoomState
from app.room.tasks import Tasks


class NearbyWatch:
    """``show`` gets the rooms whenever they change; set it before ``follow``."""

    def __init__(self, nearby: Nearby) -> None:
        self.show: Callable[[Sequence[NearbyRoom]], None] = lambda _rooms: None
        self._nearby = nearby
        self._wanted = False
        self._tasks = Tasks()
        nearby.on_rooms = lambda: self.show(nearby.rooms())

    def follow(self, state: RoomState) -> None:
        """To be called with every state of the room."""
        wanted = state.phase is Phase.START
        if wanted != self._wanted:
            self._wanted = wanted
            self._tasks.start(self._turn(), "watch for rooms nearby")

    async def _turn(self) -> None:
        if self._wanted:
            await self._nearby.watch()
        else:
            self.show(())
            await self._nearby.unwatch()

    async def close(self) -> None:
        await self._tasks.close()
        await self._nearby.unwatch()
