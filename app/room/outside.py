"""What a room needs of the world around it, as protocols and plain functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol, cast

from aiortc import RTCCertificate

from app.core.clock import Clock, SystemClock
from app.models.table import ModelRecord, Models
from app.prompt.language import Language
from app.room.admission import Waiting
from app.room.copies import Copies, NoCopies
from app.room.gate import Credentials, Gate
from app.room.generate import Choose
from app.room.invite import Invite
from app.room.meta import Meta
from app.room.near import Near
from app.room.ports import Compute, Link, Message
from app.room.relays import Relays
from app.room.saved_room import NoMemory, RoomMemory
from app.room.transport import Transport, TransportState


class Admitted(Protocol):
    """Let in; ``pass_text`` opens the door the next time, ``code`` is the room's."""

    @property
    def pass_text(self) -> str: ...

    @property
    def code(self) -> str: ...


class RoomTransport(Protocol):
    """The part of ``transport.Transport`` that a room uses."""

    me: str
    on_waiting: Callable[[Waiting], None]
    on_withdrawn: Callable[[str], None]
    on_gate: Callable[[Gate], None]
    on_link: Callable[[Link, Message], None]
    on_state: Callable[[TransportState], None]

    @property
    def fingerprint(self) -> str:
        """Of the certificate this device shows, for its invite."""
        ...

    @property
    def identity(self) -> str:
        """That certificate with its key, so that the same room can be opened again; a secret."""
        ...

    @property
    def certificate(self) -> RTCCertificate | None:
        """What connections of this device show; None where there are none to show it."""
        ...

    @property
    def relays(self) -> Relays:
        """What the creator lends to members, and a member borrows."""
        ...

    async def open_room(self, code: str, gate: Gate, hello: Message, again: bool = False) -> None:
        """``again``: this device had opened the room before it restarted."""
        ...

    async def join(self, code: str, credentials: Credentials, hello: Message) -> Admitted:
        """Waits until this device is let in; the link comes by ``on_link`` before."""
        ...

    async def join_near(self, near: Near, hello: Message) -> Admitted:
        """The same at a room chosen from the list; ``Admitted.code`` is what to come back with."""
        ...

    async def dial(self, peer_id: str, fresh: bool = False) -> Link: ...

    def allow(self, peer_id: str) -> None: ...

    def deny(self, peer_id: str) -> None: ...

    def set_rules(self, *, ask: bool, api_clients: bool) -> None: ...

    def set_hello(self, hello: Message) -> None: ...

    async def close(self) -> None: ...


class Passes(Protocol):
    """Passes of rooms this device was in, by code; kept with the secrets."""

    def get(self, code: str) -> str: ...

    def put(self, code: str, text: str) -> None: ...


@dataclass
class PassesInMemory:
    """Passes that last as long as the program."""

    kept: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def get(self, code: str) -> str:
        return self.kept.get(code, "")

    def put(self, code: str, text: str) -> None:
        self.kept[code] = text


def app_link(invite: Invite) -> str:
    return invite.app_link()


def _no_copies(_code: str) -> Copies:
    return NoCopies()


@dataclass(frozen=True)
class RoomPorts:
    """``new_transport`` is given the room server an invite names, "" for the usual ones, and the identity a
    room is opened again with, "" for a fresh one.

    ``compute`` None: this device only asks. ``meta`` says what the device is; the pledge is filled in.
    """

    new_transport: Callable[[str, str], RoomTransport]
    compute: Compute | None
    table: Models
    open_language: Callable[[ModelRecord], Awaitable[Language]]
    choose: Choose
    meta: Meta
    clock: Clock = field(default_factory=SystemClock)
    on_disk: Callable[[], Collection[str]] = tuple
    passes: Passes = field(default_factory=PassesInMemory)
    link_of: Callable[[Invite], str] = app_link
    copies: Callable[[str], Copies] = _no_copies
    """Where a room, named by its code, keeps copies of computed states on this device's disk."""
    memory: RoomMemory = field(default_factory=NoMemory)
    weights_from_room: Callable[[], bool] = lambda: True
    """Whether weights are taken from, and given to, other devices of the room."""


def room_transport(transport: Transport) -> RoomTransport:
    """The network as a room uses it. The cast is sound: rooms treat every link as the ``Link`` it is, but a
    settable callback's parameter type cannot say so."""
    return cast(RoomTransport, transport)
