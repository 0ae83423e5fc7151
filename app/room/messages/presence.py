"""Who is here: greetings, the roster, signs of life (spec: rooms §6.1)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.room.messages.base import Line, Message, Name, PeerId, RawMeta, Real, Stamp, Whole


class RosterEntry(msgspec.Struct, frozen=True):
    """A line of the roster. ``a``: that member proves its links."""

    id: PeerId
    name: Name = ""
    meta: RawMeta = msgspec.field(default_factory=dict)
    a: bool = False


class Died(msgspec.Struct, frozen=True):
    """What a device was doing when its process ended last time."""

    during: Line = ""
    ago: Real = 0.0
    loading: bool = False


class Hello(Message, frozen=True, tag="hello"):
    name: Name = ""
    meta: RawMeta = msgspec.field(default_factory=dict)
    v: Whole = 0
    back: bool = False
    died: Died | None = None


class Bye(Message, frozen=True, tag="bye"):
    """``closed`` from the creator: the room is over for good."""

    reason: Line = ""
    closed: bool = False


class Leaving(Message, frozen=True, tag="leaving"):
    """``final``: the person left on purpose; nobody needs to wait for a return."""

    final: bool = False


class Ping(Message, frozen=True, tag="ping"):
    ts: Stamp = 0.0


class Pong(Message, frozen=True, tag="pong"):
    ts: Stamp = 0.0


class Roster(Message, frozen=True, tag="roster"):
    members: Annotated[tuple[RosterEntry, ...], msgspec.Meta(max_length=256)]


class Pledge(Message, frozen=True, tag="pledge"):
    """``paused`` is ours: nothing is lent for now."""

    gb: Annotated[float, msgspec.Meta(ge=0, le=4_096)]
    paused: bool = False
