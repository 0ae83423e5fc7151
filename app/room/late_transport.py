"""A transport whose room servers are decided when the room is entered, because some have to be found or started."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiortc import RTCCertificate

from app.core.errors import LinkError
from app.room.admission import Waiting
from app.room.advert import Announcement
from app.room.gate import Credentials, Gate
from app.room.lan import Lan
from app.room.near import Near, new_alias
from app.room.nearby import Nearby
from app.room.outside import Admitted, RoomTransport
from app.room.ports import Link, Message
from app.room.relays import Relays
from app.room.signal_servers import SignalServer
from app.room.tasks import Tasks
from app.room.transport import TransportState

log = logging.getLogger(__name__)


class ServedTransport(RoomTransport, Protocol):
    """A transport that tells which room server it is registered with, and takes a second door."""

    @property
    def server(self) -> SignalServer | None: ...

    async def open_near(self, server: SignalServer, alias: str) -> None: ...

    def look_at(self, servers: Sequence[SignalServer]) -> None:
        """Room servers found since, to be tried by the next join."""
        ...


MakeTransport = Callable[[tuple[SignalServer, ...]], ServedTransport]
"""Given room servers found nearby, to be tried before all others."""


@dataclass(frozen=True)
class Surroundings:
    """The local network as this device serves and searches it."""

    lan: Lan
    nearby: Nearby


class LateTransport:
    """A ``RoomTransport``. Opening a room starts the listener and announces it; joining by code looks nearby.

    ``linked``: an invite names its room servers, so there is nothing to look for.
    """

    def __init__(self, make: MakeTransport, around: Surroundings, *, linked: bool) -> None:
        self.on_waiting: Callable[[Waiting], None] = lambda _waiting: None
        self.on_withdrawn: Callable[[str], None] = lambda _peer_id: None
        self.on_gate: Callable[[Gate], None] = lambda _gate: None
        self.on_link: Callable[[Link, Message], None] = lambda _link, _hello: None
        self.on_state: Callable[[TransportState], None] = lambda _state: None
        self.me = ""
        self._make = make
        self._around = around
        self._linked = linked
        self._made: ServedTransport | None = None
        self._tasks = Tasks()

    @property
    def fingerprint(self) -> str:
        return self._there().fingerprint

    @property
    def identity(self) -> str:
        return self._there().identity

    @property
    def certificate(self) -> RTCCertificate | None:
        return self._there().certificate

    @property
    def relays(self) -> Relays:
        return self._there().relays

    async def open_room(self, code: str, gate: Gate, hello: Message, again: bool = False) -> None:
        lan = self._around.lan
        await lan.open()
        made = self._begin(())
        await made.open_room(code, gate, hello, again)
        self.me, lan.registered = made.me, made.server
        own = lan.own()
        if own is not None and lan.registered == own:
            name = hello.get("name")
            self._tasks.start(self._announce(code, name if isinstance(name, str) else "", own), "announce nearby")

    async def _announce(self, code: str, name: str, own: SignalServer) -> None:
        """A room that cannot be entered without its code is not listed, but still found by it."""
        alias = new_alias()
        try:
            await self._there().open_near(own, alias)
        except LinkError as error:
            log.info("the room is not listed nearby: %s", error.what)
            alias = ""
        lan = self._around.lan
        await self._around.nearby.announce(Announcement(code, name, alias), lan.addresses(), lan.port)

    async def join(self, code: str, credentials: Credentials, hello: Message) -> Admitted:
        if self._made is None:
            # A link with a key that names no room server means the public one: only a typed code is looked for.
            known = self._linked or bool(credentials.key)
            self._begin(() if known else await self._around.nearby.find(code))
        else:
            self._there().look_at(await self._around.nearby.find(code))
        return await self._there().join(code, credentials, hello)

    async def join_near(self, near: Near, hello: Message) -> Admitted:
        return await self._begin(near.servers).join_near(near, hello)

    def _begin(self, near: tuple[SignalServer, ...]) -> ServedTransport:
        made = self._made = self._make(near)
        made.on_waiting = lambda waiting: self.on_waiting(waiting)
        made.on_withdrawn = lambda peer_id: self.on_withdrawn(peer_id)
        made.on_gate = lambda gate: self.on_gate(gate)
        made.on_link = self._linked_to
        made.on_state = lambda state: self.on_state(state)
        return made

    def _linked_to(self, link: Link, hello: Message) -> None:
        self.me = self._there().me
        self.on_link(link, hello)

    def _there(self) -> ServedTransport:
        assert self._made is not None, "a room is entered before anything is done in it"
        return self._made

    async def dial(self, peer_id: str, fresh: bool = False) -> Link:
        return await self._there().dial(peer_id, fresh)

    def allow(self, peer_id: str) -> None:
        self._there().allow(peer_id)

    def deny(self, peer_id: str) -> None:
        self._there().deny(peer_id)

    def set_rules(self, *, ask: bool, api_clients: bool) -> None:
        self._there().set_rules(ask=ask, api_clients=api_clients)

    def set_hello(self, hello: Message) -> None:
        self._there().set_hello(hello)

    async def close(self) -> None:
        await self._tasks.close()
        await self._around.nearby.close()
        if self._made is not None:
            await self._made.close()
        await self._around.lan.close()
