"""The one object through which sessions reach other devices: signaling, the gate, links and their stripes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from aiortc import RTCCertificate

from app.core.clock import Clock, SystemClock
from app.core.errors import LinkError, PooledError, RoomError
from app.room.admission import Admission, Waiting
from app.room.certificate import certificate_from
from app.room.codes import code_of, creator_id
from app.room.dialer import Dialer, PeerUnavailable
from app.room.doorstep import PROTOCOL, Doorstep
from app.room.entry import Entered, Entry, TurnedAway
from app.room.gate import Credentials, Gate, Verdict
from app.room.ice import IceConfig
from app.room.line import Line
from app.room.link import PeerLink
from app.room.mesh import MeshHandshake
from app.room.near import Near
from app.room.near_door import NearDoor
from app.room.peerjs import SignalDown
from app.room.ports import Message
from app.room.relays import Lender, Relays
from app.room.server_news import ServerNews
from app.room.signal_servers import SignalServer
from app.room.signaling import Signaling
from app.room.stripes import Stripes
from app.room.tasks import Tasks
from app.room.wire import DOUBLED_SLICES

log = logging.getLogger(__name__)

Result = TypeVar("Result")

STRIPES = 4
PULSE_S = 0.5
DRAIN_S = 0.3


@dataclass(frozen=True)
class TransportConfig:
    """``servers`` in the order to try, ``stripes`` the connections a link has in all (1 to 8).

    ``identity`` is a certificate of an earlier run to show again, "" for a fresh one.
    Frames of up to ``doubled`` slices are sent twice when a link has several connections and the first copy is
    not acknowledged soon: steadier on Wi-Fi, but twice the work; 0 never. ``lender`` gives relays beside those of
    ``ice``.
    """

    servers: tuple[SignalServer, ...]
    ice: IceConfig = field(default_factory=IceConfig)
    stripes: int = STRIPES
    keepalive: bool = True
    doubled: int = DOUBLED_SLICES
    identity: str = field(default="", repr=False)
    lender: Lender | None = None


class Phase(Enum):
    """How far this device is on its way into a room, and whether the room server is there."""

    REGISTERING = "registering"
    DIALING = "dialing"
    KNOCKING = "knocking"
    LOBBY = "lobby"
    IN = "in"
    REFUSED = "refused"
    SERVER_LOST = "server lost"
    SERVER_BACK = "server back"
    CLOSED = "closed"


@dataclass(frozen=True)
class TransportState:
    """``digits`` in the lobby, to compare; ``reason`` when refused."""

    phase: Phase
    digits: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Joined:
    """In a room. ``verdict``: whether the creator proved itself; ``pass_text`` opens the door next time.

    ``code`` is the room's, known to a device that came without it from now on.
    """

    link: PeerLink
    creator_hello: Message
    verdict: Verdict
    pass_text: str = field(repr=False)
    code: str


class NotLetIn(RoomError):
    """Not let in. ``room_over``: it is gone for good; ``impostor``: the creator's proof was wrong."""

    def __init__(self, turned_away: TurnedAway) -> None:
        super().__init__(turned_away.reason)
        self.room_over = turned_away.room_over
        self.impostor = turned_away.impostor


class Transport:
    """One device's connections. Either ``open_room`` or ``join``; ``dial`` and ``close`` with both.

    ``on_link(link, hello)`` gets every proved link, its session callbacks still to be set; messages that
    waited follow when it returns. ``on_waiting``, ``on_withdrawn`` and ``on_gate`` are a creator's.
    """

    def __init__(self, config: TransportConfig, clock: Clock | None = None) -> None:
        self.on_waiting: Callable[[Waiting], None] = lambda _waiting: None
        self.on_withdrawn: Callable[[str], None] = lambda _peer_id: None
        self.on_gate: Callable[[Gate], None] = lambda _gate: None
        self.on_link: Callable[[PeerLink, Message], None] = lambda _link, _hello: None
        self.on_state: Callable[[TransportState], None] = lambda _state: None
        self.me = ""
        self.links: dict[str, PeerLink] = {}
        self._config = config
        self._clock = clock or SystemClock()
        self._hello: Message = {}
        self._mesh_key = ""
        self._creator = ""
        self._admission: Admission | None = None
        self._entry: Entry | None = None
        self._proving: set[MeshHandshake] = set()
        self._signaling = Signaling(config.servers)
        self._signaling.on_connected = self._server_there
        self._relays = Relays(config.ice, config.lender, self._clock)
        self._dialer = Dialer(self._signaling, self._relays.ice, self._clock, _certificate(config.identity))
        self._dialer.on_line = self._incoming
        self._stripes = Stripes(self._dialer, self.links, self._prove_stripe, config.stripes, self._clock)
        self._near_door: NearDoor | None = None
        self._found: tuple[SignalServer, ...] = ()
        self._member = False
        self._news = ServerNews(self._clock)
        self._tasks = Tasks()
        self._pulse: asyncio.Task[None] | None = None

    @property
    def server(self) -> SignalServer | None:
        """The room server this device is registered with."""
        return self._signaling.server

    @property
    def fingerprint(self) -> str:
        """Of the certificate this device shows, for its invite: 64 hex digits."""
        return self._dialer.fingerprint

    @property
    def identity(self) -> str:
        """The certificate with its key, to open the same room again; a secret."""
        return self._dialer.identity

    @property
    def certificate(self) -> RTCCertificate:
        """What all connections of this device show."""
        return self._dialer.certificate

    @property
    def relays(self) -> Relays:
        """The relays this device uses; what it lends or borrows."""
        return self._relays

    @property
    def gate(self) -> Gate | None:
        """The creator's gate as it is now."""
        return self._admission.gate if self._admission is not None else None

    async def open_room(self, code: str, gate: Gate, hello: Message, again: bool = False) -> None:
        """Registers room ``code`` and answers knocks. ``hello`` is {name, meta} of this device.

        ``again``: this device had opened the room before, so its code may be in use for another minute.
        Raises LinkError: IdTaken when the code is in use, SignalDown when no server answers.
        """
        self.on_state(TransportState(Phase.REGISTERING))
        self._begin(hello)
        self._creator, self._mesh_key = creator_id(code), gate.mesh_key
        admission = Admission(self._creator, gate, self._introduction(), self._clock)
        admission.on_waiting = lambda waiting: self.on_waiting(waiting)
        admission.on_withdrawn = lambda peer_id: self.on_withdrawn(peer_id)
        admission.on_gate = lambda changed: self.on_gate(changed)
        admission.on_admitted = self._admitted
        self._admission = admission
        self.me = self._creator
        await self._relays.start()
        await self._signaling.open(self._creator, again)
        self._member = True
        self.on_state(TransportState(Phase.IN))

    async def join(self, code: str, credentials: Credentials, hello: Message) -> Joined:
        """Knocks at room ``code`` and waits, in the lobby if need be, until it is let in.

        ``hello`` is {name, meta, back?, died?}. Call it again, one at a time, to come back after the link
        has ended.
        Raises NotLetIn, PeerUnavailable for an unknown code, or another LinkError.
        """
        self._begin(hello)
        self._creator = creator_id(code)
        await self._relays.start()
        line = await self._reach_creator(self._servers_to_try())
        _check_certificate(line, credentials.fingerprint)
        self.on_state(TransportState(Phase.KNOCKING))
        return self._joined(code, line, await self._enter(line, credentials), credentials.pass_text)

    async def open_near(self, server: SignalServer, alias: str) -> None:
        """Answers knocks at ``alias`` too, for devices without the code. Raises LinkError without that server."""
        door = self._near_door = NearDoor(server, self._relays.ice, self._clock, self._dialer.certificate)
        door.on_line = self._knocked_near
        await door.open(alias)

    async def join_near(self, near: Near, hello: Message) -> Joined:
        """Knocks without the code at a room that announces itself, and waits until somebody lets it in.

        Come back with ``join``: the code is known then. Raises as ``join`` does.
        """
        self._begin(hello)
        self._creator = near.alias
        await self._relays.start()
        line = await self._reach_creator(near.servers)
        self.on_state(TransportState(Phase.KNOCKING))
        entered = await self._enter(line, Credentials())
        if not entered.code:
            line.close("told no code")
            raise NotLetIn(TurnedAway("The room let this device in, but did not say which it is."))
        self._creator = line.peer_id = creator_id(entered.code)
        return self._joined(entered.code, line, entered, "")

    def _joined(self, code: str, line: Line, entered: Entered, held_pass: str) -> Joined:
        self._mesh_key, self._member = entered.mesh_key, True
        self.on_state(TransportState(Phase.IN))
        link = self._live(line, entered.creator_hello, entered.kept)
        return Joined(link, entered.creator_hello, entered.verdict, entered.pass_text or held_pass, code)

    async def dial(self, peer_id: str, fresh: bool = False) -> PeerLink:
        """A proved link to another device; the one there is, unless ``fresh``. Raises LinkError."""
        if not self._member:
            raise LinkError("This device is not in a room.")
        known = self.links.get(peer_id)
        if known is not None and known.open and not fresh:
            return known
        return await self._prove(await self._dialer.dial(peer_id))

    def allow(self, peer_id: str) -> None:
        """Lets a waiting device in."""
        if self._admission is not None:
            self._admission.allow(peer_id)

    def deny(self, peer_id: str) -> None:
        """Turns a waiting device down."""
        if self._admission is not None:
            self._admission.deny(peer_id)

    def set_rules(self, *, ask: bool, api_clients: bool) -> None:
        """Whether newcomers without a key or pass are asked about, and programs let in."""
        if self._admission is not None:
            self._admission.set_rules(ask=ask, api_clients=api_clients)

    def set_hello(self, hello: Message) -> None:
        """How this device introduces itself from now on: {name, meta}."""
        self._hello = hello
        if self._admission is not None:
            self._admission.hello = self._introduction()

    async def close(self) -> None:
        """Ends everything; last messages that were sent still get out. Leaves no task, socket or timer."""
        await self._drain()
        if self._admission is not None:
            self._admission.close()
        for link in list(self.links.values()):
            link.close("closed")
        await self._stripes.close()
        await self._relays.close()
        await self._tasks.close()
        if self._near_door is not None:
            await self._near_door.close()
        await self._dialer.close()
        await self._signaling.close()
        self.on_state(TransportState(Phase.CLOSED))

    async def _drain(self) -> None:
        """A moment for what is still queued, so that a farewell arrives."""
        await asyncio.sleep(0)
        until = self._clock.now() + DRAIN_S
        while any(link.open and link.backlog for link in self.links.values()):
            if self._clock.now() >= until:
                return
            await asyncio.sleep(0.01)

    def _begin(self, hello: Message) -> None:
        self._hello = hello
        if self._pulse is None:
            self._pulse = self._tasks.start(self._beat(), "transport pulse")

    def _introduction(self) -> Message:
        """What everybody but the creator is told; "back" and "died" are for the creator's ears."""
        told = {name: self._hello[name] for name in ("name", "meta") if name in self._hello}
        return {**told, "v": PROTOCOL}

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(PULSE_S)
            if self._admission is not None:
                self._admission.tick()
            if self._entry is not None:
                self._entry.tick()
            for handshake in list(self._proving):
                handshake.tick()
            self._stripes.tick()
            self._tell_of_server(self._news.due())

    def _server_there(self, there: bool) -> None:
        self._tell_of_server(self._news.changed(there))

    def _tell_of_server(self, there: bool | None) -> None:
        if there is not None:
            self.on_state(TransportState(Phase.SERVER_BACK if there else Phase.SERVER_LOST))

    async def _reach_creator(self, servers: Sequence[SignalServer]) -> Line:
        """The creator may have fallen back to a later server of the list."""
        unknown: LinkError | None = None
        for server in servers:
            try:
                if server != self._signaling.server or not self._signaling.connected:
                    self.on_state(TransportState(Phase.REGISTERING))
                    self.me = await self._signaling.open_at(server, self.me)
                self.on_state(TransportState(Phase.DIALING))
                return await self._dialer.dial(self._creator)
            except PeerUnavailable as error:
                unknown = error
            except SignalDown as error:
                unknown = unknown or error
        raise unknown or SignalDown("There is no room server to ask.", "Add one in the settings.")

    def _servers_to_try(self) -> list[SignalServer]:
        current = self._signaling.server
        first = (current,) if current is not None else ()
        return list(dict.fromkeys([*first, *self._found, *self._config.servers]))

    def look_at(self, servers: Sequence[SignalServer]) -> None:
        """Room servers that were found since: a creator that restarted, or another one, may be at a new address."""
        self._found = tuple(servers)

    async def _enter(self, line: Line, credentials: Credentials) -> Entered:
        decided: asyncio.Future[Entered] = asyncio.get_running_loop().create_future()
        entry = self._entry = Entry(line, self.me, credentials, self._hello, self._clock)
        entry.on_lobby = lambda digits: self.on_state(TransportState(Phase.LOBBY, digits))
        entry.on_entered = lambda entered: _resolve(decided, entered)
        entry.on_refused = lambda turned_away: _reject(decided, NotLetIn(turned_away))
        entry.start()
        try:
            return await decided
        except NotLetIn as error:
            self.on_state(TransportState(Phase.REFUSED, reason=error.what))
            raise
        except asyncio.CancelledError:
            line.send({"t": "leaving"})
            line.close_soon("given up")
            raise
        finally:
            self._entry = None

    def _incoming(self, line: Line) -> None:
        if line.is_stripe:
            self._stripes.arrived(line)
        elif self._admission is not None:
            self._admission.arrived(line)
        elif self._member and line.peer_id != self._creator:
            self._tasks.start(self._accept(line), f"accept {line.peer_id}")
        else:
            line.close("not in a room, or a creator that dials")

    def _knocked_near(self, line: Line) -> None:
        if self._admission is not None and not line.is_stripe:
            self._admission.arrived(line, code_of(self._creator))
        else:
            line.close("no way in")

    async def _accept(self, line: Line) -> None:
        try:
            await self._prove(line)
        except LinkError as error:
            log.info("%s: %s", line.peer_id, error.what)

    async def _prove(self, line: Line) -> PeerLink:
        """A main link between devices: live once both ends have proved that they were let in."""
        hello, kept = await self._handshake(line, self._introduction())
        return self._live(line, hello, kept)

    async def _prove_stripe(self, line: Line) -> None:
        await self._handshake(line, None)

    async def _handshake(self, line: Line, hello: Message | None) -> tuple[Message, Sequence[Message]]:
        decided: asyncio.Future[tuple[Message, Sequence[Message]]] = asyncio.get_running_loop().create_future()
        handshake = MeshHandshake(line, self.me, self._mesh_key, hello, self._clock)
        handshake.on_proved = lambda theirs, kept: _resolve(decided, (theirs, kept))
        handshake.on_failed = lambda reason: _reject(decided, LinkError(f"Another device was not trusted: {reason}."))
        self._proving.add(handshake)
        handshake.start()
        try:
            return await decided
        except asyncio.CancelledError:
            line.close("given up")
            raise
        finally:
            self._proving.discard(handshake)

    def _admitted(self, line: Doorstep, hello: Message, kept: Sequence[Message]) -> None:
        self._live(line, hello, kept)

    def _live(self, line: Doorstep, hello: Message, kept: Sequence[Message]) -> PeerLink:
        """A proved connection becomes a link; one to the same device that still stands gives way."""
        assert isinstance(line, Line), "only lines come to a transport's door"
        earlier = self.links.pop(line.peer_id, None)
        if earlier is not None:
            earlier.close("reconnected")
        link = self.links[line.peer_id] = PeerLink(line, self._clock, self._config.keepalive, self._config.doubled)
        link.on_gone = lambda: self._link_gone(link)
        self.on_link(link, hello)
        link.start(kept)
        self._stripes.link_up(link, may_dial=bool(self._mesh_key))
        return link

    def _link_gone(self, link: PeerLink) -> None:
        if self.links.get(link.peer_id) is link:
            del self.links[link.peer_id]


def _certificate(identity: str) -> RTCCertificate | None:
    return certificate_from(identity) if identity else None


def _resolve(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _reject(future: asyncio.Future[Result], error: PooledError) -> None:
    if not future.done():
        future.set_exception(error)


def _check_certificate(line: Line, named: str) -> None:
    """Raises NotLetIn, before anything is said, when the link names another certificate than is shown."""
    if named and line.connection.peer_fingerprint != named:
        line.close("another certificate")
        raise NotLetIn(TurnedAway("Another computer than the link names answered.", impostor=True))
