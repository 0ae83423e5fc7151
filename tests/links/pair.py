"""Two devices in this process with a proved link between them, and the time a frame takes over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.room.frame import Frame, FrameKind
from app.room.gate import Credentials, Gate
from app.room.link import PeerLink
from tests.room.loopback import Device, room_server, until

CODE = "4TKG9P"
HELLO = {"name": "otter", "meta": {}}
UP_WITHIN_S = 60.0
FRAME_WITHIN_S = 30.0


@dataclass
class Pair:
    """``near`` dialed ``far``."""

    near: PeerLink
    far: PeerLink

    async def hop(self, size: int) -> float:
        """Seconds from the send of a frame of ``size`` bytes to its arrival."""
        return await self._cross(size, back=False)

    async def echo(self, size: int) -> float:
        """Seconds there and back, as a chain of two devices has it."""
        return await self._cross(size, back=True)

    async def _cross(self, size: int, back: bool) -> float:
        loop = asyncio.get_running_loop()
        came: asyncio.Future[float] = loop.create_future()

        def arrived(_frame: Frame) -> None:
            if not came.done():
                came.set_result(loop.time())

        end = self.near if back else self.far
        if back:
            self.far.on_frame = self.far.send_frame
        end.on_frame = arrived
        began = loop.time()
        self.near.send_frame(Frame(FrameKind.HIDDEN, 1, 1, bytes(size)))
        async with asyncio.timeout(FRAME_WITHIN_S):
            return await came - began


@asynccontextmanager
async def pair(stripes: int = 1) -> AsyncIterator[Pair]:
    """Both ends, with all connections up."""
    async with room_server() as server:
        gate = Gate()
        creator, member = Device([server], stripes), Device([server], stripes)
        await creator.transport.open_room(CODE, gate, HELLO)
        try:
            joined = await member.transport.join(CODE, Credentials(key=gate.key), HELLO)
            me = member.transport.me
            await until(lambda: me in creator.transport.links, UP_WITHIN_S)
            far = creator.link(me)
            await until(lambda: joined.link.stripes == far.stripes == stripes, UP_WITHIN_S)
            yield Pair(joined.link, far)
        finally:
            await member.transport.close()
            await creator.transport.close()


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least that share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
