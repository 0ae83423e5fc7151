"""Connections that are only two ends of a list, for handshakes without a network."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from app.room.ports import Message

A = "sha-256 " + ":".join(f"{i:02x}" for i in range(32))
B = "sha-256 " + ":".join(f"{255 - i:02x}" for i in range(32))
BOUND = f"{A},{B}"


class FakeLine:
    """One end. What it sends waits in ``sent`` until the pair's ``Wire`` carries it over."""

    def __init__(self, peer_id: str, dialed: bool, binding: str = BOUND) -> None:
        self.peer_id = peer_id
        self.dialed = dialed
        self.binding = binding
        self.open = True
        self.on_closed: Callable[[str], None] = lambda _reason: None
        self.sent: deque[Message] = deque()
        self.history: list[Message] = []
        self.ended = ""
        self.trusted = False
        self._take: Callable[[Message], None] | None = None
        self._unheard: list[Message] = []

    def send(self, message: Message) -> None:
        if self.open:
            self.sent.append(message)
            self.history.append(message)

    def listen(self, take: Callable[[Message], None]) -> None:
        self._take = take
        unheard, self._unheard = self._unheard, []
        for message in unheard:
            take(message)

    def hear(self, message: Message) -> None:
        if self._take is None:
            self._unheard.append(message)
        else:
            self._take(message)

    def trust(self) -> None:
        self.trusted = True

    def close(self, reason: str) -> None:
        if self.open:
            self.open = False
            self.ended = reason
            self.on_closed(reason)

    def close_soon(self, reason: str) -> None:
        self.ended = reason

    def said(self, kind: str) -> Any:
        """The last message of that kind, or None."""
        return next((message for message in reversed(self.history) if message.get("t") == kind), None)


def carry(*ends: tuple[FakeLine, FakeLine]) -> None:
    """Moves messages between the two ends of each pair until none is left."""
    moved = True
    while moved:
        moved = False
        for one, other in ends:
            for source, target in ((one, other), (other, one)):
                if source.sent:
                    moved = True
                    target.hear(source.sent.popleft())
