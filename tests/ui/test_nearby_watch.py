"""Rooms nearby are listened for on the start screen only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.room.near import NearbyRoom
from app.room.nearby import Nearby
from app.room.state import Phase, RoomState
from app.ui.nearby_watch import NearbyWatch

HERON = NearbyRoom("heron", "pooled://near/1", reachable=True)


class Air(Nearby):
    """A network with one room on it."""

    def __init__(self) -> None:
        super().__init__()
        self.did: list[str] = []

    def rooms(self) -> tuple[NearbyRoom, ...]:
        return (HERON,) if self.did[-1:] == ["watch"] else ()

    async def watch(self) -> None:
        self.did.append("watch")
        self.on_rooms()

    async def unwatch(self) -> None:
        self.did.append("unwatch")


async def test_it_listens_while_the_start_screen_is_up() -> None:
    air, shown = Air(), list[Sequence[NearbyRoom]]()
    watch = NearbyWatch(air)
    watch.show = shown.append
    for phase in (Phase.START, Phase.START, Phase.CONNECTING, Phase.ROOM, Phase.START):
        watch.follow(RoomState(phase))
        await asyncio.sleep(0.01)
    assert air.did == ["watch", "unwatch", "watch"]
    assert shown == [(HERON,), (), (HERON,)]
    await watch.close()
    assert air.did[-1] == "unwatch"
