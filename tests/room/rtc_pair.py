"""Real WebRTC links on loopback without a room server: the descriptions are carried by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiortc import RTCCertificate

from app.core.clock import SystemClock
from app.room.ice import IceConfig
from app.room.line import Line
from app.room.link import PeerLink
from app.room.rtc import RtcConnection

OPEN_S = 20.0


def connection_with(certificate: RTCCertificate) -> tuple[RtcConnection, asyncio.Event]:
    """A connection still to be described, and the event of its opening."""
    connection, opened = RtcConnection(IceConfig(stun=()), "dc_pair", certificate), asyncio.Event()
    connection.on_open = opened.set
    return connection, opened


async def link_over(connection: RtcConnection, opened: asyncio.Event, peer_id: str, *, dialed: bool) -> PeerLink:
    """The link, once the connection is open. Set its callbacks and start it."""
    line = Line(connection, peer_id, "dc_pair", "dc_pair", dialed, SystemClock())
    connection.on_open = opened.set
    await asyncio.wait_for(opened.wait(), OPEN_S)
    return PeerLink(line, SystemClock())


@asynccontextmanager
async def linked_pair(one: RTCCertificate, other: RTCCertificate) -> AsyncIterator[tuple[PeerLink, PeerLink]]:
    """Both ends of one link, started; the first is called "lender" by its peer id."""
    (near, near_open), (far, far_open) = connection_with(one), connection_with(other)
    await near.take_answer(await far.take_offer(await near.make_offer()))
    links = await asyncio.gather(
        link_over(near, near_open, "lender", dialed=True), link_over(far, far_open, "asker", dialed=False)
    )
    for link in links:
        link.start()
    try:
        yield links[0], links[1]
    finally:
        for connection in (near, far):
            connection.close("closed")
            await connection.closed()
