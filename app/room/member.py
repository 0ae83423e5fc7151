"""A device in somebody else's room: it follows the model host or is it, asks, and holds layers when told to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.core.errors import PooledError
from app.room import messages as m
from app.room.authority import FROM_API, counts
from app.room.dealing import StartWish
from app.room.events import (
    CreatorLost,
    Event,
    HeirWanted,
    LinkMeasured,
    Member,
    Noticed,
    RoomEnded,
    RosterChanged,
    SettingsChanged,
)
from app.room.meta import Meta
from app.room.model_side import ModelSide, SidePorts
from app.room.names import clean_line, clean_name
from app.room.past import Past, read_past
from app.room.peers import Peers
from app.room.pick import model_host_of
from app.room.ports import Link
from app.room.roster import Roster, read_roster
from app.room.settings import RoomSettings, Visibility
from app.room.styles import read_rules
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

REACH_SECONDS = 20.0
REACH_AGAIN = 5.0
LINGER = 30.0
NOT_PICKED = "This device sees other devices in the room, so it does not run the model."


@dataclass(frozen=True)
class MemberPorts:
    """``lost`` is called when the creator's link ends without a goodbye, ``over`` when the room has ended.

    ``borrow`` takes relays that the creator lends, ``inherit`` the room itself, ``moved`` the fingerprint of the
    certificate that its next creator will show.
    """

    me: str
    creator: str
    side: SidePorts
    lost: Callable[[], None]
    over: Callable[[], None]
    borrow: Callable[[m.RelayLease], None]
    inherit: Callable[[m.Estate], None]
    moved: Callable[[str], None]


class MemberSession:
    """The member's side of one room, over any number of reconnections: its crowd is the creator's roster."""

    def __init__(self, ports: MemberPorts) -> None:
        self.me, self.creator = ports.me, ports.creator
        self.roster = Roster()
        self.settings = RoomSettings()
        self._ports = ports
        self._clock = ports.side.clock
        self._tasks = Tasks()
        self._reaching: dict[str, float] = {}
        self._known: set[str] = set()
        self._lingering: dict[str, Member] = {}
        self._linger_until = 0.0
        self._peers = Peers(self._clock)
        self._peers.on_message = self._heard
        self._peers.on_frame = lambda link, frame: self.side.frame(frame, link.peer_id)
        self._peers.on_gone = self._gone
        self._peers.on_rtt = self._measured
        self._peers.on_silence(
            lambda id: self.side.silent(id, silent=True), lambda id: self.side.silent(id, silent=False)
        )
        self.side = ModelSide(replace(ports.side, emit=self._emit), self, lambda: self.settings)
        self._peers.on_ended = self.side.weights.link_closed
        self.side.on_past = lambda past: self.send(self.creator, past.message())

    # -- the crowd ----------------------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[Member, ...]:
        """The creator's roster; after its return also those it has not seen again yet."""
        here = {member.id for member in self.roster.members}
        return (*self.roster.members, *(member for id, member in self._lingering.items() if id not in here))

    @property
    def name(self) -> str:
        """As the creator gave it."""
        own = self.roster.find(self.me)
        return own.name if own else ""

    def link(self, id: str) -> Link | None:
        return self._peers.link(id)

    def send(self, id: str, message: m.Message) -> None:
        self._peers.send(id, message)

    def tell(self, message: m.Message) -> None:
        self.show(message)
        for member in self.members:
            self._peers.send(member.id, message)

    def show(self, message: m.Message) -> None:
        self.side.show(message)

    def happened(self, event: Event) -> None:
        self._emit(event)

    def _emit(self, event: Event) -> None:
        if isinstance(event, SettingsChanged):
            self.settings = event.settings
        self._ports.side.emit(event)

    @property
    def _reachable(self) -> list[Member]:
        """The others that have the key of links among members; API clients have none."""
        return [member for member in self.members if member.id != self.me and not member.meta.is_api]

    async def reach(self) -> None:
        await asyncio.gather(*(self._reach(member.id) for member in self._reachable))

    async def _reach(self, id: str) -> None:
        """A link that does not come up is tried again from the room's clock."""
        link = self._peers.link(id)
        if link is not None and link.open:
            return
        self._reaching[id] = self._clock.now()
        try:
            async with asyncio.timeout(REACH_SECONDS):
                await self._ports.side.dial(id, False)
        except (PooledError, TimeoutError) as error:
            log.info("%s cannot be reached to run the model with: %s", id, error)

    # -- links --------------------------------------------------------------------------------------------------

    def connected(self, link: Link) -> None:
        """A proved link: to the creator, the first one or one after a reconnection, or to another device."""
        self._peers.add(link)
        if link.peer_id == self.creator:
            self._creator_came()
        member = self.roster.find(link.peer_id)
        if member is not None and self.side.running is not None:
            self._greet(member)

    def _creator_came(self) -> None:
        """A creator that was restarted learns anew who is here; whoever it knew before is not gone for that."""
        self._lingering = {member.id: member for member in self.roster.members if member.id != self.me}
        self._linger_until = self._clock.now() + LINGER
        if self.side.running is not None:
            self.send(self.creator, self.side.past.message())

    def _greet(self, member: Member) -> None:
        back = member.name in self._known
        self._known.add(member.name)
        self.side.greet(member, back=back)

    def _gone(self, id: str) -> None:
        self.side.link_gone(id)
        if id == self.creator:
            self._emit(CreatorLost())
            self._ports.lost()

    # -- hearing ------------------------------------------------------------------------------------------------

    def _heard(self, link: Link, message: m.Message) -> None:
        known = link.peer_id in {self.creator, self.side.following.host, *(member.id for member in self.members)}
        member = self.roster.find(link.peer_id)
        rules = member is None or not member.meta.is_api or type(message) in FROM_API
        if known and rules and counts(message, link.peer_id, self.side.view):
            self._act(link, message)

    def _act(self, link: Link, message: m.Message) -> None:
        match message:
            case m.Leaving() | m.Bye():
                self._goodbye(link, message)
            case _ if self.side.weights.heard(link, message):
                pass
            case m.Roster():
                self._roster_came(read_roster(message))
            case m.ModelHostIs():
                self.side.named(message.id)
                self._cut_off_strangers()
            case m.StartRequest():
                self._start_came(message)
            case m.HeirAsked():
                self._emit(HeirWanted(wanted=True))
            case m.Estate():
                self._ports.inherit(message)
            case m.HandedOver():
                self._emit(Noticed(f"{clean_name(message.name, message.id)} owns the room now."))
                self._ports.moved(message.fp)
            case m.RelayLease():
                self._ports.borrow(message)
            case m.PastIs():
                self._past_came(read_past(message))
            case m.RulesAre():
                self._rules_came(message)
            case _:
                self._from_member(link.peer_id, message)

    def _from_member(self, id: str, message: m.Message) -> None:
        """A link may be up before the creator's roster names who is at its other end."""
        self.side.said(self.roster.find(id) or Member(id, id[:8], Meta()), message)

    def _start_came(self, start: m.StartRequest) -> None:
        """A start relayed by the creator is followed where this device's own pick agrees."""
        boss = start.boss or self.creator
        if boss != model_host_of(self.roster.members, self.creator):
            if boss == self.me:
                self.send(self.creator, m.StartRefused(why=NOT_PICKED))
            return
        self.show(start)
        self._known = {member.name for member in self.members}
        self.side.start(boss, StartWish(start.model, start.ctx, start.by))
        self._cut_off_strangers()

    def _past_came(self, past: Past) -> None:
        """This device is about to run the model; a program that began anew has shown nothing of it yet."""
        self.side.past = past
        if self.settings.visibility is Visibility.EVERYONE:
            self.show(m.History(items=past.history[-m.HISTORY_SENT :]))

    def _rules_came(self, message: m.RulesAre) -> None:
        before = self.settings
        self._emit(SettingsChanged(read_rules(message, before)))
        self.side.settings_changed(before)

    def _roster_came(self, roster: Roster) -> None:
        before = {member.id: member for member in self.members}
        self.roster = roster
        for member in roster.members:
            self._lingering.pop(member.id, None)
        self._emit(RosterChanged(self.members))
        self.side.lending_changed()
        self._without(before)
        if self.side.running is not None:
            self._greet_linked([member for member in roster.members if member.id not in before])

    def _without(self, before: dict[str, Member]) -> None:
        """Ends the links to those of ``before`` that are not here any more.

        The one that runs the model may only have lost the creator; the creator says when it is no longer it.
        """
        here = {member.id for member in self.members}
        for id, gone in before.items():
            if id in here:
                continue
            if id == self.side.following.host and self.side.running is None:
                self.side.host_gone(gone.name)
            else:
                self._cut_off(id)

    def _cut_off(self, id: str) -> None:
        self._peers.remove(id)
        self.side.link_gone(id)

    def _cut_off_strangers(self) -> None:
        """Another device runs the model now, so nothing keeps a link to one that is not here."""
        here = {self.creator, *(member.id for member in self.members)}
        for id in self._peers.ids:
            if id not in here:
                self._cut_off(id)

    def _linger(self, now: float) -> None:
        if self._lingering and now >= self._linger_until:
            before = {member.id: member for member in self.members}
            self._lingering = {}
            self._emit(RosterChanged(self.members))
            self._without(before)

    def _greet_linked(self, members: list[Member]) -> None:
        """A creator that was restarted lists its members again one by one; links between them outlive that."""
        for member in members:
            link = self._peers.link(member.id)
            if link is not None and link.open:
                self._greet(member)

    def _goodbye(self, link: Link, message: m.Leaving | m.Bye) -> None:
        """The creator may end the room or put this device out; others just go."""
        self._peers.remove(link.peer_id)
        if link.peer_id == self.creator and isinstance(message, m.Bye):
            self._emit(RoomEnded(clean_line(message.reason) or "The room was closed."))
            self._ports.over()
        elif link.peer_id == self.creator:
            self._gone(link.peer_id)
        else:
            self.side.link_gone(link.peer_id, final=isinstance(message, m.Leaving) and message.final)

    def _measured(self, link: Link, seconds: float) -> None:
        self._emit(LinkMeasured(link.peer_id, seconds * 1000, link.path))
        self.side.rtt(link, seconds)

    # -- this device's own doing --------------------------------------------------------------------------------

    def lend(self, gb: float, *, paused: bool) -> None:
        if paused:
            self.side.free()
        self.send(self.creator, m.Pledge(gb=gb, paused=paused))

    def start(self, model: str, context: int) -> None:
        boss = model_host_of(self.roster.members, self.creator)
        self.send(self.creator, m.StartRequest(model=model, boss=boss, by=self.name, ctx=context))

    def tick(self) -> None:
        self._peers.tick(self.side.watching())
        self.side.tick()
        self._linger(self._clock.now())
        if self.side.running is not None:
            self._reach_missing(self._clock.now())

    def _reach_missing(self, now: float) -> None:
        """The model host keeps a link to everybody in the roster."""
        for member in self._reachable:
            link, tried = self._peers.link(member.id), self._reaching.get(member.id, float("-inf"))
            missing = link is None and member.id != self.creator
            if missing and now - tried >= REACH_AGAIN:
                self._reaching[member.id] = now
                self._tasks.start(self._reach(member.id), f"reach {member.id}")

    def leave(self) -> None:
        self._peers.broadcast(m.Leaving(final=True))

    async def close(self) -> None:
        await self._tasks.close()
        await self.side.close()
