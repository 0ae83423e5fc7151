"""The device that owns the room: roster, names, departures, the way to all (spec: rooms §7.4, §10, §16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.api.relay import AskRelay
from app.room.authority import FROM_API, TO_API, counts
from app.room.events import Event, LinkMeasured, Member, Noticed, RosterChanged
from app.room.gate import NO_API_CLIENTS
from app.room.meta import OURS, Meta, read_meta, reduced_api, without_host_marks
from app.room.model_side import ModelSide, SidePorts
from app.room.names import clean_name, unique_name
from app.room.past import read_past
from app.room.peers import Peers
from app.room.ports import Link
from app.room.ports import Message as RawMessage
from app.room.roster import Roster
from app.room.settings import RoomSettings, Visibility
from app.room.starts import Starts, StartsPorts
from app.room.state import NoticeKind
from app.room.styles import rules, style_message

PROBE_SECONDS = 1.5
MOST_KEPT = 64


@dataclass
class _Probe:
    """A newcomer whose name is taken, while the holder is asked whether it lives."""

    link: Link
    newcomer: Member
    hello: m.Hello
    holder: str
    until: float
    asked_at: float
    kept: list[RawMessage] = field(default_factory=list[RawMessage])


class Creator:
    """The room's crowd as its owner sees it: one link to every member."""

    def __init__(self, me: Member, ports: SidePorts, settings: RoomSettings) -> None:
        self.me = self.creator = me.id
        self.settings = settings
        self._clock = ports.clock
        self._emit = ports.emit
        self._roster = Roster((me,))
        self._probes: dict[str, _Probe] = {}
        self._relays: m.RelayLease | None = None
        self._heir = ""
        self.on_heir: Callable[[Member, m.HeirAnswer], None] = lambda _heir, _answer: None
        self._peers = Peers(ports.clock)
        self._peers.on_message = self._heard
        self._peers.on_frame = lambda link, frame: self.side.frame(frame, link.peer_id)
        self._peers.on_gone = lambda id: self._left(id, final=False)
        self._peers.on_rtt = self._measured
        self._peers.on_silence(lambda id: self._silent(id, silent=True), lambda id: self._silent(id, silent=False))
        self._peers.hears = self._concerns
        self.side = ModelSide(ports, self, lambda: self.settings)
        self._programs = AskRelay(self.send, lambda: "" if self.side.hosts else self.side.host_id)
        self._peers.on_ended = self.side.weights.link_closed
        self.starts = Starts(self, self.side, StartsPorts(ports.clock, ports.table, lambda: self.settings))
        ports.emit(RosterChanged(self.members))

    # -- the crowd --------------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[Member, ...]:
        return self._roster.members

    def name_of(self, id: str) -> str:
        """ "" for somebody who is not here."""
        member = self._roster.find(id)
        return member.name if member else ""

    def link(self, id: str) -> Link | None:
        return self._peers.link(id)

    def send(self, id: str, message: m.Message) -> None:
        self._peers.send(id, message)

    def tell(self, message: m.Message) -> None:
        self.show(message)
        self._peers.broadcast(message)

    def _concerns(self, id: str, message: m.Message) -> bool:
        """An API client hears of its own asks, and whether a model runs."""
        member = self._roster.find(id)
        told = type(message) in TO_API or bool(m.rid_of(message))
        return told or member is None or not member.meta.is_api

    def show(self, message: m.Message) -> None:
        self.starts.told(message)
        self.side.show(message)

    def happened(self, event: Event) -> None:
        self._emit(event)

    async def reach(self) -> None:
        """Everybody in the roster has a link to the creator."""

    # -- coming -----------------------------------------------------------------------------------------

    def arrived(self, link: Link, raw_hello: RawMessage) -> None:
        """A device that passed the gate takes its name, or the name's holder is asked whether it lives."""
        hello = _read_hello(raw_hello)
        meta = without_host_marks(read_meta(hello.meta))
        newcomer = Member(
            link.peer_id, clean_name(hello.name, link.peer_id), reduced_api(meta) if meta.is_api else meta
        )
        link.on_closed = lambda _reason: self._probe_closed(link)
        holder = self._roster.named(newcomer.name)
        if holder is None or holder.id == newcomer.id:
            self._seat(link, newcomer, hello)
        elif holder.id == self.me:
            self._seat(link, self._renamed(newcomer), m.Hello())
        elif self._is_dead(holder.id, back=hello.back):
            self._left(holder.id, final=False)
            self._seat(link, newcomer, hello)
        else:
            self._probe(link, newcomer, hello, holder.id)

    def _renamed(self, newcomer: Member) -> Member:
        return replace(newcomer, name=unique_name(newcomer.name, self._roster.names))

    def _is_dead(self, id: str, *, back: bool) -> bool:
        link = self._peers.link(id)
        return link is None or not link.open or (back and self._peers.silence(id) > PROBE_SECONDS)

    def _probe(self, link: Link, newcomer: Member, hello: m.Hello, holder: str) -> None:
        now = self._clock.now()
        probe = _Probe(link, newcomer, hello, holder, now + PROBE_SECONDS, now)
        self._probes[link.peer_id] = probe
        link.on_message = lambda raw: probe.kept.append(raw) if len(probe.kept) < MOST_KEPT else None
        self._peers.ping(holder)

    def _probe_closed(self, link: Link) -> None:
        self._probes.pop(link.peer_id, None)

    def _decide_probes(self) -> None:
        now = self._clock.now()
        for id, probe in list(self._probes.items()):
            holder = self._peers.link(probe.holder)
            lives = holder is not None and holder.open and holder.last_heard > probe.asked_at
            if not lives and now < probe.until:
                continue
            del self._probes[id]
            if lives:
                self._seat(probe.link, self._renamed(probe.newcomer), m.Hello())
            else:
                self._left(probe.holder, final=False)
                self._seat(probe.link, probe.newcomer, probe.hello)
            for raw in probe.kept:
                self._peers.heard(probe.link, raw)

    def _seat(self, link: Link, member: Member, hello: m.Hello) -> None:
        if not link.open:
            return
        self._peers.add(link)
        self._change(self._roster.with_member(member))
        running = self.side.running
        if hello.died is not None and hello.died.loading and running is not None:
            running.dealing.died_loading(member)
        self._welcome(member, back=hello.back)

    def _welcome(self, member: Member, *, back: bool) -> None:
        if self.settings.visibility is not Visibility.EVERYONE:
            self.send(member.id, m.VisibilityIs(mode=self.settings.visibility.value))
        self.send(member.id, style_message(self.settings.style))
        self.send(member.id, rules(self.settings))
        if self._relays is not None and not member.meta.is_api:
            self.send(member.id, self._relays)
        self.starts.welcome(member, back=back)
        self.side.greet(member, back=back)
        if member.meta.is_api and not self.side.hosts and self.side.runs is not None:
            self.send(member.id, self.side.runs)

    def _change(self, roster: Roster) -> None:
        """Everybody hears of every change."""
        self._roster = roster
        self._emit(RosterChanged(self.members))
        self._peers.broadcast(roster.message())

    # -- hearing ----------------------------------------------------------------------------------------

    def _heard(self, link: Link, message: m.Message) -> None:
        member = self._roster.find(link.peer_id)
        if member is None or (member.meta.is_api and type(message) not in FROM_API):
            return
        if counts(message, member.id, self.side.view):
            self._act(member, link, message)

    def _act(self, member: Member, link: Link, message: m.Message) -> None:
        match message:
            case m.Pledge():
                self._change(self._roster.with_pledge(member.id, message.gb, paused=message.paused))
                self._lent(member.id)
            case m.Leaving():
                self._left(member.id, final=message.final)
            case m.Bye():
                self._left(member.id, final=False)
            case _ if not member.meta.is_api and self.side.weights.heard(link, message):
                pass
            case m.StartRequest():
                self.starts.press(member.id, member.name, message)
            case m.HeirAnswer():
                self._heir_answered(member, message)
            case m.StartRefused():
                self.starts.refused(member, message)
            case m.VisibilityIs() | m.StyleIs():
                """The creator's own settings count, whatever a model host says."""
            case m.PastIs():
                self.side.heard_past(read_past(message))
            case m.Ask() | m.StopAnswer() if member.meta.is_api and not message.rid:
                """A program asks under a name of its own, and never in the chat."""
            case m.Ask() | m.StopAnswer() if member.meta.is_api and not self.side.hosts:
                self._programs.ask(member, message)
            case _ if self._programs.answered(message):
                pass
            case _:
                self.starts.told(message)
                self.side.said(member, message)
                self._tell_programs(message)

    def _tell_programs(self, message: m.Message) -> None:
        """What another device that runs the model says of it; API clients hear only the creator."""
        if isinstance(message, m.ReadyAll | m.StartFailed | m.Degraded | m.RoomMap):
            for member in self.members:
                if member.meta.is_api:
                    self.send(member.id, message)

    def _measured(self, link: Link, seconds: float) -> None:
        self._emit(LinkMeasured(link.peer_id, seconds * 1000, link.path))
        self.side.rtt(link, seconds)

    # -- going ------------------------------------------------------------------------------------------

    def _left(self, id: str, *, final: bool) -> None:
        """Everybody hears at once; whoever runs the model decides what becomes of its layers."""
        self._peers.remove(id)
        gone = self._roster.find(id)
        if gone is None:
            return
        ran_the_model = self.side.following.host == id
        self._programs.client_left(id)
        if ran_the_model:
            self._programs.host_gone()
        self._change(self._roster.without(id))
        self.side.link_gone(id, final=final)
        if ran_the_model:
            self.starts.host_gone(gone, final=final)

    def disconnect(self, id: str, reason: str) -> None:
        """Puts a member out of the room."""
        self.send(id, m.Bye(reason=reason))
        self._left(id, final=True)

    def _silent(self, id: str, *, silent: bool) -> None:
        """Where the model runs elsewhere, its host tells of its own chain, and the creator of everybody."""
        if self.side.running is not None:
            self.side.silent(id, silent=silent)
        else:
            hold = silent and self.side.answering and id == self.side.host_id
            self.tell(m.Silent(id=id, silent=silent, hold=hold))

    # -- the owner's own doing --------------------------------------------------------------------------

    @property
    def own(self) -> Member:
        return self._roster.members[0]

    def lend(self, meta: Meta) -> None:
        """This device lends another amount from now on, or pauses."""
        if meta.paused:
            self.side.free()
        self._change(self._roster.with_member(replace(self.own, meta=meta)))
        self._peers.broadcast(m.Pledge(gb=meta.contrib_gb, paused=meta.paused))
        self._lent(self.me)

    def _lent(self, id: str) -> None:
        """Another amount may mean another deal, or another device that runs the model."""
        member = self._roster.find(id)
        if member is not None and id == self.side.host_id and not member.meta.webgpu:
            self.starts.host_paused(member)
        else:
            self.side.lending_changed()

    def lend_relays(self, lease: m.RelayLease) -> None:
        """Credentials of the room's relays, to everybody who was let in; API clients need none."""
        self._relays = lease
        for member in self.members:
            if not member.meta.is_api:
                self.send(member.id, lease)

    def set_settings(self, settings: RoomSettings) -> None:
        before, self.settings = self.settings, settings
        self._peers.broadcast(rules(settings))
        self.side.settings_changed(before)
        if not settings.api_clients:
            self._put_programs_out()

    def _put_programs_out(self) -> None:
        for member in self.members:
            if member.meta.is_api:
                self.disconnect(member.id, NO_API_CLIENTS)

    def tick(self) -> None:
        self._peers.tick(self.side.watching())
        self.side.tick()
        self.starts.tick()
        self._decide_probes()

    def ask_heir(self, id: str) -> None:
        """Offers the room to a member of our own kind; its answer comes by ``on_heir``."""
        member = self._roster.find(id)
        if member is None or id == self.me or member.meta.native != OURS:
            self._emit(Noticed("Only a device with this program can own the room.", kind=NoticeKind.BAD))
            return
        self._heir = id
        self.send(id, m.HeirAsked())

    def _heir_answered(self, member: Member, answer: m.HeirAnswer) -> None:
        if member.id != self._heir:
            return
        self._heir = ""
        if answer.yes:
            self.on_heir(member, answer)
        else:
            self._emit(Noticed(f"{member.name} does not want to own the room."))

    def hand_over(self, heir: Member, left: m.Estate, fingerprint: str) -> None:
        """The heir gets everything, the others hear whom to expect; then this device only leaves."""
        self.send(heir.id, left)
        told = m.HandedOver(heir.id, heir.name, fingerprint)
        for member in self.members:
            if member.id != heir.id:
                self.send(member.id, told)
        self._peers.broadcast(m.Leaving(final=True))

    def close_room(self) -> None:
        """Everybody hears that the room is over for good."""
        self._peers.broadcast(m.Bye(reason="The room was closed.", closed=True))
        self._peers.broadcast(m.Leaving(final=True))

    async def close(self) -> None:
        await self.side.close()


def _read_hello(raw: RawMessage) -> m.Hello:
    try:
        hello = m.decode({**raw, "t": "hello"})
    except ProtocolError:
        return m.Hello()
    return hello if isinstance(hello, m.Hello) else m.Hello()
