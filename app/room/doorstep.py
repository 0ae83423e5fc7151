"""What a handshake needs of a connection whose other end is not known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.room.ports import Message

PROTOCOL = 4
WRONG_VERSION = "This device speaks another version of the room protocol. Update it and join again."


class Doorstep(Protocol):
    """A connection's control channel with what proofs are bound to."""

    peer_id: str
    dialed: bool
    open: bool
    on_closed: Callable[[str], None]

    @property
    def binding(self) -> str: ...

    def send(self, message: Message) -> None: ...

    def listen(self, take: Callable[[Message], None]) -> None:
        """Gives every message to ``take`` from now on, those that waited first."""
        ...

    def trust(self) -> None:
        """The other end was let in: from now on its messages may be long."""
        ...

    def close(self, reason: str) -> None: ...

    def close_soon(self, reason: str) -> None:
        """Closes once a last message had time to go out."""
        ...


def courtesy(line: Doorstep, message: Message) -> bool:
    """Answers what is answered before any proof: pings, and a peer that leaves. False for all else."""
    kind = message.get("t")
    if kind == "ping":
        line.send({"t": "pong", "ts": message.get("ts")})
    elif kind == "leaving":
        line.close("left")
    return kind in ("ping", "pong", "leaving")


def speaks_our_version(hello: Message) -> bool:
    return hello.get("v") == PROTOCOL
