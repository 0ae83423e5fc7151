"""The device that owns the room: roster, names, departures, the way to all (spec: rooms §7.4, §10, §16)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.core.clock import Clock
from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.authority import Viewpoint, counts
from app.room.events import Event, LinkMeasured, Member, RosterChanged
from app.room.frame import Frame
from app.room.liveness import Role
from app.room.meta import Meta, read_meta, reduced_api, without_host_marks
from app.room.model_host import ModelHost
from app.room.names import clean_name, unique_name
from app.room.ports import Link
from app.room.ports import Message as RawMessage
from app.room.roster import Roster
from app.room.screen import View, style_message, to_events
from app.room.settings import RoomSettings, Visibility
from app.room.watcher import Watcher, Watching

log = logging.getLogger(__name__)

PROBE_SECONDS = 1.5
MOST_KEPT = 64
NO_MODEL_HOST = "The room's owner has no GPU to run a model on. Open the room on a device that has one."


@dataclass
class _Probe:
    """A newcomer whose name is taken, while the holder is asked whether it lives."""

    link: Link
    newcomer: Member
    holder: str
    until: float
    asked_at: float
    kept: list[RawMessage] = field(default_factory=list[RawMessage])


@dataclass(frozen=True)
class CreatorPorts:
    """``emit`` shows an event on the own screen, ``label`` gives a model's label by key."""

    me: Member
    clock: Clock
    emit: Callable[[Event], None]
    label: Callable[[str], str]


class Creator:
    """Implements ``crowd.Crowd`` for the model host that lives on the same device."""

    def __init__(self, ports: CreatorPorts, settings: RoomSettings) -> None:
        self.me = ports.me.id
        self.settings = settings
        self.model_host: ModelHost | None = None
        self._ports = ports
        self._roster = Roster((ports.me,))
        self._links: dict[str, Link] = {}
        self._probes: dict[str, _Probe] = {}
        self._watcher = Watcher(ports.clock)
        self._watcher.on_silent = lambda id: self._silent(id, silent=True)
        self._watcher.on_back = lambda id: self._silent(id, silent=False)
        self._watcher.on_gone = self._dropped
        self._watcher.on_rtt = self._measured
        ports.emit(RosterChanged(self.members))

    # -- the crowd --------------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[Member, ...]:
        return self._roster.members

    def link(self, id: str) -> Link | None:
        return self._links.get(id)

    def send(self, id: str, message: m.Message) -> None:
        link = self._links.get(id)
        if link is not None:
            link.send(m.encode(message))

    def tell(self, message: m.Message) -> None:
        self.show(message)
        self._broadcast(message)

    def show(self, message: m.Message) -> None:
        for event in to_events(message, View(self.me, self.settings, self._ports.label)):
            self._ports.emit(event)

    def happened(self, event: Event) -> None:
        self._ports.emit(event)

    def _broadcast(self, message: m.Message) -> None:
        raw = m.encode(message)
        for link in list(self._links.values()):
            link.send(raw)

    # -- coming -----------------------------------------------------------------------------------------

    def arrived(self, link: Link, raw_hello: RawMessage) -> None:
        """A device that passed the gate takes its name, or the name's holder is asked whether it lives."""
        hello = _read_hello(raw_hello)
        meta = without_host_marks(read_meta(hello.meta))
        newcomer = Member(
            link.peer_id, clean_name(hello.name, link.peer_id), reduced_api(meta) if meta.is_api else meta
        )
        link.on_closed = lambda _reason: self._closed(link)
        holder = self._roster.named(newcomer.name)
        if holder is None or holder.id == newcomer.id:
            self._seat(link, newcomer, hello)
        elif holder.id == self.me:
            self._seat(link, self._renamed(newcomer), m.Hello())
        elif self._is_dead(holder.id, back=hello.back):
            self._dropped(holder.id)
            self._seat(link, newcomer, hello)
        else:
            self._probe(link, newcomer, holder.id)

    def _renamed(self, newcomer: Member) -> Member:
        return replace(newcomer, name=unique_name(newcomer.name, self._roster.names))

    def _is_dead(self, id: str, *, back: bool) -> bool:
        link = self._links.get(id)
        return link is None or not link.open or (back and self._watcher.silence(id) > PROBE_SECONDS)

    def _probe(self, link: Link, newcomer: Member, holder: str) -> None:
        now = self._ports.clock.now()
        probe = _Probe(link, newcomer, holder, now + PROBE_SECONDS, now)
        self._probes[link.peer_id] = probe
        link.on_message = lambda raw: probe.kept.append(raw) if len(probe.kept) < MOST_KEPT else None
        self._watcher.ping(holder)

    def _decide_probes(self) -> None:
        now = self._ports.clock.now()
        for id, probe in list(self._probes.items()):
            holder = self._links.get(probe.holder)
            lives = holder is not None and holder.open and holder.last_heard > probe.asked_at
            if not lives and now < probe.until:
                continue
            del self._probes[id]
            if not lives:
                self._dropped(probe.holder)
            self._seat(probe.link, self._renamed(probe.newcomer), m.Hello())
            for raw in probe.kept:
                self._heard(probe.link, raw)

    def _seat(self, link: Link, member: Member, hello: m.Hello) -> None:
        if not link.open:
            return
        self._links[member.id] = link
        link.on_message = lambda raw: self._heard(link, raw)
        link.on_frame = lambda frame: self._frame(link, frame)
        self._watcher.add(link)
        self._change(self._roster.with_member(member))
        if hello.died is not None and hello.died.loading and self.model_host is not None:
            self.model_host.dealing.died_loading(member)
        self._welcome(member, back=hello.back)

    def _welcome(self, member: Member, *, back: bool) -> None:
        if self.settings.visibility is not Visibility.EVERYONE:
            self.send(member.id, m.VisibilityIs(mode=self.settings.visibility.value))
        self.send(member.id, style_message(self.settings.style))
        if self.model_host is not None:
            self.model_host.greet(member, back=back)

    def _change(self, roster: Roster) -> None:
        """Everybody hears of every change."""
        self._roster = roster
        self._ports.emit(RosterChanged(self.members))
        self._broadcast(roster.message())

    # -- hearing ----------------------------------------------------------------------------------------

    def _heard(self, link: Link, raw: RawMessage) -> None:
        """A bad message of a peer is dropped; the room goes on."""
        try:
            message = m.decode(raw)
        except ProtocolError as error:
            log.info("%s: %s", link.peer_id, error)
            return
        member = self._roster.find(link.peer_id)
        if message is None or member is None or self._links.get(link.peer_id) is not link:
            return
        if counts(message, member.id, self._view()):
            self._act(member, link, message)

    def _view(self) -> Viewpoint:
        chain = self.model_host.dealing.chain_ids if self.model_host else frozenset[str]()
        return Viewpoint(self.me, self.me, chain=chain)

    def _act(self, member: Member, link: Link, message: m.Message) -> None:
        match message:
            case m.Ping():
                link.send(m.encode(m.Pong(ts=message.ts)))
            case m.Pong():
                self._watcher.pong(member.id, message)
            case m.Pledge():
                self._change(self._roster.with_pledge(member.id, message.gb))
            case m.Leaving():
                self._left(member.id, final=message.final)
            case m.Bye():
                self._left(member.id, final=False)
            case m.WeightRequest():
                link.send(m.encode(m.WeightPart(id=message.id, miss=True)))
            case _ if self.model_host is not None:
                self.model_host.said(member, message)
            case m.StartRequest() | m.Ask():
                self.send(member.id, m.StartRefused(why=NO_MODEL_HOST))
            case _:
                pass

    def _frame(self, link: Link, frame: Frame) -> None:
        if self.model_host is not None and self._links.get(link.peer_id) is link:
            self.model_host.frame(frame, link.peer_id)

    def _measured(self, id: str, seconds: float) -> None:
        link = self._links.get(id)
        self._ports.emit(LinkMeasured(id, seconds * 1000, link.path if link else "unknown"))
        if self.model_host is not None:
            self.model_host.rtt(id, seconds)

    # -- going ------------------------------------------------------------------------------------------

    def _closed(self, link: Link) -> None:
        probe = self._probes.pop(link.peer_id, None)
        if probe is None and self._links.get(link.peer_id) is link:
            self._left(link.peer_id, final=False)

    def _dropped(self, id: str) -> None:
        self._left(id, final=False)

    def _left(self, id: str, *, final: bool) -> None:
        """Everybody hears at once; the model host decides what becomes of its layers."""
        link = self._links.pop(id, None)
        self._watcher.remove(id)
        if link is not None:
            link.on_closed = lambda _reason: None
            link.close("left")
        if self._roster.find(id) is None:
            return
        self._change(self._roster.without(id))
        if self.model_host is not None:
            self.model_host.member_gone(id, final=final)

    def disconnect(self, id: str, reason: str) -> None:
        """Puts a member out of the room."""
        self.send(id, m.Bye(reason=reason))
        self._left(id, final=True)

    def _silent(self, id: str, *, silent: bool) -> None:
        if self.model_host is not None:
            self.model_host.silent(id, silent=silent)
        else:
            self.tell(m.Silent(id=id, silent=silent))

    # -- the owner's own doing --------------------------------------------------------------------------

    @property
    def own(self) -> Member:
        return self._roster.members[0]

    def set_own_meta(self, meta: Meta) -> None:
        self._change(self._roster.with_member(replace(self.own, meta=meta)))
        self._broadcast(m.Pledge(gb=meta.contrib_gb))

    def set_settings(self, settings: RoomSettings) -> None:
        before, self.settings = self.settings, settings
        if settings.visibility is not before.visibility:
            self.tell(m.VisibilityIs(mode=settings.visibility.value))
        if settings.style != before.style:
            self.tell(style_message(settings.style))

    def tick(self) -> None:
        self._watcher.tick(self._watching())
        if self.model_host is not None:
            self.model_host.tick()
        self._decide_probes()

    def _watching(self) -> Watching:
        model_host = self.model_host
        if model_host is None:
            return Watching(role=lambda _id: Role.COMPUTER, loading=lambda _id: False)
        return Watching(
            role=lambda id: model_host.role(self._roster.find(id)),
            loading=model_host.loading,
            answering=model_host.talk.answering,
        )

    def close_room(self) -> None:
        """Everybody hears that the room is over for good."""
        self._broadcast(m.Bye(reason="The room was closed.", closed=True))
        self._broadcast(m.Leaving(final=True))


def _read_hello(raw: RawMessage) -> m.Hello:
    try:
        hello = m.decode({**raw, "t": "hello"})
    except ProtocolError:
        return m.Hello()
    return hello if isinstance(hello, m.Hello) else m.Hello()
