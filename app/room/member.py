"""A device in somebody else's room: it follows the model host, asks, and holds layers when it is told to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from app.core.clock import Clock
from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.authority import Viewpoint, counts
from app.room.events import (
    CreatorLost,
    Event,
    LinkMeasured,
    RoomEnded,
    RosterChanged,
    SettingsChanged,
)
from app.room.frame import Frame
from app.room.liveness import Role
from app.room.ports import Link
from app.room.ports import Message as RawMessage
from app.room.roster import Roster, read_roster
from app.room.screen import View, to_events
from app.room.settings import RoomSettings
from app.room.watcher import Watcher, Watching
from app.room.worker import Worker

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MemberPorts:
    """``lost`` is called once when the creator's link ends without a goodbye."""

    me: str
    creator: str
    clock: Clock
    emit: Callable[[Event], None]
    label: Callable[[str], str]
    lost: Callable[[], None]
    over: Callable[[], None]


class MemberSession:
    """The member's side of one room, over any number of reconnections."""

    def __init__(self, ports: MemberPorts) -> None:
        self.roster = Roster()
        self.settings = RoomSettings()
        self.worker: Worker | None = None
        self._ports = ports
        self._link: Link | None = None
        self._followed = ""
        self._watcher = Watcher(ports.clock)
        self._watcher.on_gone = lambda _id: self._ended()
        self._watcher.on_rtt = self._measured

    @property
    def creator_link(self) -> Link | None:
        return self._link

    @property
    def name(self) -> str:
        """As the creator gave it."""
        own = self.roster.find(self._ports.me)
        return own.name if own else ""

    def connected(self, link: Link) -> None:
        """The first link to the creator, or the one after a reconnection."""
        self._link = link
        link.on_message = lambda raw: self.heard(link, raw)
        link.on_frame = lambda frame: self.frame(link, frame)
        link.on_closed = lambda _reason: self._ended() if self._link is link else None
        self._watcher.add(link)

    def neighbour(self, link: Link) -> None:
        """A proved link to another device: pings and frames only, whoever dialed."""
        link.on_message = lambda raw: self.heard(link, raw)
        link.on_frame = lambda frame: self.frame(link, frame)
        link.on_closed = lambda _reason: self._neighbour_gone(link)

    def _neighbour_gone(self, link: Link) -> None:
        if self.worker is not None:
            self.worker.link_closed(link.peer_id)

    def tell(self, message: m.Message) -> None:
        """To the model host, which lives on the creator's device."""
        if self._link is not None:
            self._link.send(m.encode(message))

    def frame(self, link: Link, frame: Frame) -> None:
        if self.worker is not None:
            self.worker.frame(frame, link.peer_id)

    def heard(self, link: Link, raw: RawMessage) -> None:
        """A bad message of a peer is dropped."""
        try:
            message = m.decode(raw)
        except ProtocolError as error:
            log.info("%s: %s", link.peer_id, error)
            return
        if message is not None and counts(message, link.peer_id, self._view()):
            self._act(link, message)

    def _view(self) -> Viewpoint:
        return Viewpoint(self._ports.me, self._ports.creator, self._followed)

    def _act(self, link: Link, message: m.Message) -> None:
        match message:
            case m.Ping():
                link.send(m.encode(m.Pong(ts=message.ts)))
            case m.Pong():
                self._watcher.pong(link.peer_id, message)
            case m.Leaving() | m.Bye():
                self._goodbye(link, message)
            case m.WeightRequest():
                link.send(m.encode(m.WeightPart(id=message.id, miss=True)))
            case m.InventoryRequest():
                link.send(m.encode(m.Inventory(url=message.url)))
            case m.Roster():
                self.roster = read_roster(message)
                self._ports.emit(RosterChanged(self.roster.members))
            case m.ModelHostIs():
                self._followed = message.id
            case _:
                self._from_model_host(message)

    def _from_model_host(self, message: m.Message) -> None:
        worker = self.worker
        match message:
            case m.Load() if worker is not None:
                worker.load(message)
            case m.Load():
                self.tell(m.DeviceError(message="This device cannot hold layers.", load=True))
            case m.Next() if worker is not None:
                worker.next(message)
            case m.Layers() if worker is not None:
                worker.dealt(message.by, self.name)
            case m.StartFailed() if worker is not None:
                worker.stop_load()
            case _:
                pass
        self._show(message)

    def _show(self, message: m.Message) -> None:
        model_host = self._followed or self._ports.creator
        for event in to_events(message, View(model_host, self.settings, self._ports.label)):
            if isinstance(event, SettingsChanged):
                self.settings = event.settings
            self._ports.emit(event)

    def _goodbye(self, link: Link, message: m.Leaving | m.Bye) -> None:
        """The creator may end the room or put this device out; others just go."""
        if link.peer_id != self._ports.creator:
            link.close("left")
            return
        if isinstance(message, m.Bye):
            self._link = None
            reason = message.reason or "The room was closed."
            self._ports.emit(RoomEnded(reason))
            self._ports.over()
        link.close("left")

    def _measured(self, id: str, seconds: float) -> None:
        path = self._link.path if self._link is not None else "unknown"
        self._ports.emit(LinkMeasured(id, seconds * 1000, path))

    def _ended(self) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        self._watcher.remove(link.peer_id)
        link.close("silent")
        self._ports.emit(CreatorLost())
        self._ports.lost()

    def tick(self) -> None:
        self._watcher.tick(Watching(role=lambda _id: Role.CREATOR, loading=lambda _id: False))

    def leave(self) -> None:
        self.tell(m.Leaving(final=True))

    async def close(self) -> None:
        if self.worker is not None:
            await self.worker.close()
