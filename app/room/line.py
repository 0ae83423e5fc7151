"""The control channel of one connection as messages, before it is known who is at the other end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import cast

from app.core.clock import Clock
from app.core.errors import ProtocolError
from app.room.chunks import CLOSE_REQUEST, MAX_PIECES, PIECE, Assembler, Chunker
from app.room.ports import Message
from app.room.rtc import RtcConnection

log = logging.getLogger(__name__)

STRIPE_LABEL = "stripe"
MAX_BACKLOG = 64 * 2**20
PARTING_S = 0.3
MAX_UNHEARD = 64
MOST_BAD = 3
"""Pieces that cannot be read after which a line is closed."""


class Line:
    """One connection to ``peer_id``; a ``Doorstep`` while that is unproved.

    Messages wait in order until somebody listens. Long ones are dropped until ``trust``, so that a stranger
    fills no memory. ``on_closed`` is called once, for whoever uses the line
    at that time, and ``on_gone`` before it, for whoever made it.
    """

    def __init__(
        self,
        connection: RtcConnection,
        peer_id: str,
        connection_id: str,
        label: str,
        dialed: bool,
        clock: Clock,
    ) -> None:
        self.peer_id = peer_id
        self.connection_id = connection_id
        self.label = label
        self.dialed = dialed
        self.connection = connection
        self.on_closed: Callable[[str], None] = lambda _reason: None
        self.on_gone: Callable[[str], None] = lambda _reason: None
        self.on_heard: Callable[[], None] = lambda: None
        self.last_heard = clock.now()
        self.open = True
        self._clock = clock
        self._chunker = Chunker()
        self._assembler = Assembler(most_pieces=0)
        self._on_message: Callable[[Message], None] | None = None
        self._unheard: list[Message] = []
        self._bad = 0
        self._parting: asyncio.TimerHandle | None = None
        connection.on_control = self._data
        connection.on_heard = self._heard
        connection.on_closed = self._closed

    @property
    def binding(self) -> str:
        return self.connection.binding

    @property
    def is_stripe(self) -> bool:
        return self.label == STRIPE_LABEL

    def listen(self, take: Callable[[Message], None]) -> None:
        """Gives every message to ``take`` from now on, those that waited first."""
        self._on_message = take
        unheard, self._unheard = self._unheard, []
        for message in unheard:
            self._give(message)

    def trust(self) -> None:
        """The other end was let in: from now on its messages may be long."""
        self._assembler.most_pieces = MAX_PIECES

    def send(self, message: Message) -> None:
        """Quiet when the line has died. Raises ProtocolError for a message with no form on the wire."""
        if not self.open:
            return
        if self.connection.control_backlog > MAX_BACKLOG:
            self.close("does not read")
            return
        for data in self._chunker.messages(message):
            self.connection.send_control(data)

    def close(self, reason: str) -> None:
        self.connection.close(reason)

    def close_soon(self, reason: str) -> None:
        """Closes after the time that a last message needs."""
        if self._parting is None and self.open:
            loop = asyncio.get_running_loop()
            self._parting = loop.call_later(PARTING_S, self.close, reason)

    def _closed(self, reason: str) -> None:
        if not self.open:
            return
        self.open = False
        if self._parting is not None:
            self._parting.cancel()
        self.on_gone(reason)
        self.on_closed(reason)

    def _heard(self) -> None:
        self.last_heard = self._clock.now()
        self.on_heard()

    def _data(self, data: bytes) -> None:
        if not self._assembler.most_pieces and len(data) > PIECE:
            log.info("%s said too much before it was let in", self.peer_id)
            return
        try:
            value = self._assembler.feed(data)
        except ProtocolError as error:
            self._unreadable(error)
            return
        if value is CLOSE_REQUEST:
            self.close("closed by the other device")
        elif isinstance(value, Mapping) and isinstance(value.get("t"), str):
            self._take(cast("Message", without_nulls(value)))

    def _unreadable(self, error: ProtocolError) -> None:
        log.info("%s (%s)", error.what, self.peer_id)
        self._bad += 1
        if self._bad >= MOST_BAD:
            self.close("what it sends cannot be read")

    def _take(self, message: Message) -> None:
        if self._on_message is None:
            self._unheard += [message] if len(self._unheard) < MAX_UNHEARD else []
        else:
            self._give(message)

    def _give(self, message: Message) -> None:
        """The border where one peer's bad message ends, whatever it set off."""
        if self._on_message is None:
            return
        try:
            self._on_message(message)
        except Exception:
            log.exception("a %s message from %s went wrong", message.get("t"), self.peer_id)


def without_nulls(value: object) -> object:
    """The value with null members left out of every map: on this wire, null means absent."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return {name: without_nulls(member) for name, member in members.items() if member is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[object]", value)]
    return value
