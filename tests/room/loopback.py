"""A room server and devices inside one process, all on 127.0.0.1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aioice.ice
import pytest
from aiohttp import web

from app.core.errors import PooledError
from app.room.frame import Frame
from app.room.ice import IceConfig
from app.room.link import PeerLink
from app.room.relays import Lender
from app.room.signal_server import SignalHub, add_room_server
from app.room.signal_servers import SignalServer
from app.room.transport import Phase, Transport, TransportConfig, TransportState


def use_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections offer 127.0.0.1, which aioice otherwise leaves out."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda *_args, **_options: ["127.0.0.1"])


def offer_loopback() -> None:
    """The same for the rest of a process."""
    aioice.ice.get_host_addresses = lambda *_args, **_options: ["127.0.0.1"]


@asynccontextmanager
async def room_server(expire_s: float = 0.2) -> AsyncIterator[SignalServer]:
    """The application's own room server on a free port."""
    application, room = web.Application(), web.Application()
    add_room_server(room, SignalHub(expire_s))
    application.add_subapp("/pooled", room)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield SignalServer("127.0.0.1", runner.addresses[0][1], secure=False, path="/pooled/")
    finally:
        await runner.cleanup()


async def until(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Waits for something that other tasks bring about."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.005)


class Device:
    """A transport that notes all it tells."""

    def __init__(
        self,
        servers: list[SignalServer],
        stripes: int = 1,
        ice: IceConfig | None = None,
        lender: Lender | None = None,
    ) -> None:
        config = TransportConfig(tuple(servers), ice or IceConfig(stun=()), stripes, lender=lender)
        self.transport = Transport(config)
        self.states: list[TransportState] = []
        self.waiting: dict[str, Any] = {}
        self.gates: list[Any] = []
        self.hellos: dict[str, Mapping[str, Any]] = {}
        self.messages: dict[str, list[Mapping[str, Any]]] = {}
        self.frames: dict[str, list[Frame]] = {}
        self.ended: list[tuple[str, str]] = []
        self.transport.on_state = self.states.append
        self.transport.on_waiting = lambda waiting: self.waiting.__setitem__(waiting.peer_id, waiting)
        self.transport.on_withdrawn = lambda peer_id: self.waiting.pop(peer_id)
        self.transport.on_gate = self.gates.append
        self.transport.on_link = self._linked

    def _linked(self, link: PeerLink, hello: Mapping[str, Any]) -> None:
        peer_id = link.peer_id
        self.hellos[peer_id] = hello
        link.on_message = self.messages.setdefault(peer_id, []).append
        link.on_frame = self.frames.setdefault(peer_id, []).append
        link.on_closed = lambda reason: self.ended.append((peer_id, reason))

    def link(self, peer_id: str) -> PeerLink:
        return self.transport.links[peer_id]

    @property
    def digits(self) -> str:
        return next((state.digits for state in self.states if state.phase is Phase.LOBBY), "")


async def outcome(work: Awaitable[Any]) -> Any:
    """The result, or the error as a value."""
    try:
        return await work
    except PooledError as error:
        return error
