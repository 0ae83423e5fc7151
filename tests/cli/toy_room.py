"""A room with a running toy model on 127.0.0.1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.room import intents as it
from app.room.meta import OURS, Meta
from app.room.outside import RoomPorts, room_transport
from app.room.room import Room
from app.room.transport import Transport, TransportConfig
from tests.room.api.asking import open_tool_language
from tests.room.loopback import room_server, until
from tests.room.toy import TABLE, ToyCompute, greedy
from tests.room.world import EXACT

WITHIN_S = 15.0


class ToyRoom:
    def __init__(self, room: Room, signal: str) -> None:
        self.room, self.signal = room, signal

    @property
    def link(self) -> str:
        assert self.room.state.invite is not None
        return self.room.state.invite.link


@asynccontextmanager
async def toy_room(step_s: float = 0.0) -> AsyncIterator[ToyRoom]:
    """``step_s``: how long a word takes."""
    async with room_server() as server:
        config = TransportConfig((server,), stripes=1)
        room = Room(
            RoomPorts(
                new_transport=lambda _signal, _identity: room_transport(Transport(config)),
                compute=_Slow(step_s),
                table=TABLE,
                open_language=open_tool_language,
                choose=greedy,
                meta=Meta(ua="Device", webgpu=True, max_bind_mb=2048, native=OURS, fixed_host=True),
            ),
            EXACT,
        )
        room.start()
        try:
            room.handle(it.OpenRoom("otter", 6))
            await until(lambda: room.state.can_start, WITHIN_S)
            room.handle(it.ChooseModel("toy"))
            room.handle(it.Start())
            await until(lambda: room.state.phase.has_model, WITHIN_S)
            yield ToyRoom(room, server.label)
        finally:
            await room.close()


class _Slow(ToyCompute):
    def __init__(self, step_s: float) -> None:
        super().__init__()
        self._step_s = step_s

    async def hidden(self, *args: Any) -> Any:
        await asyncio.sleep(self._step_s)
        return await super().hidden(*args)
