"""One device's links to the others of its room: heard, watched and ended (spec: rooms §6, §16.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from app.core.clock import Clock
from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.frame import Frame
from app.room.ports import Link
from app.room.ports import Message as RawMessage
from app.room.watcher import Watcher, Watching

log = logging.getLogger(__name__)

MOST_BAD = 3
"""Messages without sense after which a device is no longer listened to."""


class Peers:
    """Live links by peer id. What a peer says wrong is dropped; the third time its link ends.

    ``on_message`` gets typed messages, ``on_gone`` a device whose link ended without our doing, ``on_ended`` every
    link that is over or was replaced. ``hears`` says what kinds of messages concern a peer.
    """

    def __init__(self, clock: Clock) -> None:
        self.on_message: Callable[[Link, m.Message], None] = lambda _link, _message: None
        self.on_frame: Callable[[Link, Frame], None] = lambda _link, _frame: None
        self.on_gone: Callable[[str], None] = lambda _id: None
        self.on_ended: Callable[[Link], None] = lambda _link: None
        self.on_rtt: Callable[[Link, float], None] = lambda _link, _seconds: None
        self.hears: Callable[[str, m.Message], bool] = lambda _id, _message: True
        self._links: dict[str, Link] = {}
        self._bad: dict[str, int] = {}
        self._watcher = Watcher(clock)
        self._watcher.on_gone = lambda id: self._lost(id, "silent")
        self._watcher.on_rtt = self._measured

    def on_silence(self, silent: Callable[[str], None], back: Callable[[str], None]) -> None:
        """Who is told when a device stops answering, and when it answers again."""
        self._watcher.on_silent, self._watcher.on_back = silent, back

    def add(self, link: Link) -> None:
        """Takes the link over; an earlier one of the same device is forgotten."""
        earlier = self._links.get(link.peer_id)
        if earlier is not None and earlier is not link:
            earlier.on_closed = lambda _reason: None
            self.on_ended(earlier)
        self._links[link.peer_id] = link
        self._bad.pop(link.peer_id, None)
        self._watcher.add(link)
        link.on_closed = lambda _reason: self._closed(link)
        link.on_frame = lambda frame: self._frame(link, frame)
        link.on_message = lambda raw: self.heard(link, raw)

    def link(self, id: str) -> Link | None:
        return self._links.get(id)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._links)

    def send(self, id: str, message: m.Message) -> None:
        link = self._links.get(id)
        if link is not None and self.hears(id, message):
            link.send(m.encode(message))

    def broadcast(self, message: m.Message) -> None:
        raw = m.encode(message)
        for id, link in list(self._links.items()):
            if self.hears(id, message):
                link.send(raw)

    def heard(self, link: Link, raw: RawMessage) -> None:
        """A raw message of a peer, as far as it makes sense."""
        if self._links.get(link.peer_id) is not link:
            return
        try:
            message = m.decode(raw)
        except ProtocolError as error:
            self._nonsense(link, error)
            return
        match message:
            case None:
                pass
            case m.Ping():
                link.send(m.encode(m.Pong(ts=message.ts)))
            case m.Pong():
                self._watcher.pong(link.peer_id, message)
            case _:
                self.on_message(link, message)

    def _nonsense(self, link: Link, error: ProtocolError) -> None:
        log.info("%s: %s", link.peer_id, error)
        bad = self._bad[link.peer_id] = self._bad.get(link.peer_id, 0) + 1
        if bad >= MOST_BAD:
            self._lost(link.peer_id, "it keeps sending messages that make no sense")

    def _frame(self, link: Link, frame: Frame) -> None:
        if self._links.get(link.peer_id) is link:
            self.on_frame(link, frame)

    def _measured(self, id: str, seconds: float) -> None:
        link = self._links.get(id)
        if link is not None:
            self.on_rtt(link, seconds)

    def _closed(self, link: Link) -> None:
        if self._links.get(link.peer_id) is link:
            self._lost(link.peer_id, "closed")

    def _lost(self, id: str, reason: str) -> None:
        self.remove(id, reason)
        self.on_gone(id)

    def remove(self, id: str, reason: str = "left") -> None:
        """Ends a link, if there is one, without telling ``on_gone``."""
        link = self._links.pop(id, None)
        self._bad.pop(id, None)
        self._watcher.remove(id)
        if link is not None:
            link.on_closed = lambda _reason: None
            link.close(reason)
            self.on_ended(link)

    def silence(self, id: str) -> float:
        """Seconds since the last byte."""
        return self._watcher.silence(id)

    def ping(self, id: str) -> None:
        self._watcher.ping(id)

    def tick(self, watching: Watching) -> None:
        self._watcher.tick(watching)
