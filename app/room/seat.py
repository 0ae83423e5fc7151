"""A device's place in a room: the creator's, with the model, or a member's (spec: rooms §26.2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from app.core.errors import PooledError
from app.core.units import GIB
from app.room import events as ev
from app.room import intents as it
from app.room import messages as m
from app.room.admission import Waiting
from app.room.codes import creator_id, random_code
from app.room.copies import Copies, NoCopies
from app.room.creator import NO_MODEL_HOST, Creator, CreatorPorts
from app.room.dealing import DealingPorts, StartWish
from app.room.gate import Credentials, Gate
from app.room.intents import Intent
from app.room.invite import Invite, parse_invite
from app.room.kinds import kind_of
from app.room.member import MemberPorts, MemberSession
from app.room.meta import Meta, meta_map, read_meta
from app.room.model_host import ModelHost
from app.room.names import clean_name
from app.room.outside import RoomPorts, RoomTransport
from app.room.pledges import pledge_gb
from app.room.ports import Link, Message
from app.room.serial import SerialCompute
from app.room.settings import RoomSettings
from app.room.state import Invite as ShownInvite
from app.room.state import RoomState, WaitingRequest
from app.room.tasks import Tasks
from app.room.transport import NotLetIn, Phase, TransportState
from app.room.worker import Worker, WorkerPorts

log = logging.getLogger(__name__)

KNOCK_PERIOD = 3.0
KNOCK_SECONDS = 60.0
LINES = {
    Phase.REGISTERING: "Reaching the room server",
    Phase.DIALING: "Looking for the room",
    Phase.KNOCKING: "Found the room, knocking",
}


@dataclass(frozen=True)
class SeatPorts:
    outside: RoomPorts
    emit: Callable[[ev.Event], None]
    settings: RoomSettings

    def copies(self, code: str) -> Copies:
        """Nothing is written where the person does not want it."""
        return self.outside.copies(code) if self.settings.checkpoints_on_disk else NoCopies()

    def label(self, key: str) -> str:
        record = self.outside.table.find(key)
        return record.label if record else key

    def meta(self, gb: float) -> Meta:
        """Without an engine this device only asks."""
        if self.outside.compute is None:
            return replace(self.outside.meta, webgpu=False, contrib_gb=0.0)
        return replace(self.outside.meta, contrib_gb=gb)


class Seat(Protocol):
    """What the facade does with either place."""

    async def enter(self) -> None: ...

    def handle(self, intent: Intent, state: RoomState) -> None: ...

    def tick(self) -> None: ...

    async def close(self) -> None: ...


class CreatorSeat:
    """Owns a room and runs its model."""

    def __init__(self, ports: SeatPorts, intent: it.OpenRoom) -> None:
        self._ports = ports
        self._name = clean_name(intent.name, "otter")
        self._meta = ports.meta(intent.gb)
        self._transport: RoomTransport = ports.outside.new_transport("")
        self._creator: Creator | None = None
        self._model_host: ModelHost | None = None
        self._copies: Copies = NoCopies()

    async def enter(self) -> None:
        code, gate = random_code(), Gate(ask=self._ports.settings.ask_first)
        self._ports.emit(ev.Connecting(code, "Opening the room"))
        self._listen()
        await self._transport.open_room(code, gate, self._hello())
        self._open(code)
        link = self._ports.outside.link_of(Invite(code, gate.key, fingerprint=self._transport.fingerprint))
        self._ports.emit(ev.InviteMade(ShownInvite(code, link, has_key=True)))

    def _listen(self) -> None:
        self._transport.on_waiting = self._waiting
        self._transport.on_withdrawn = lambda id: self._ports.emit(ev.WaitingGone(id))
        self._transport.on_link = self._arrived

    def _hello(self) -> Message:
        return {"name": self._name, "meta": meta_map(self._meta)}

    def _open(self, code: str) -> None:
        me = ev.Member(creator_id(code), self._name, self._meta)
        self._ports.emit(ev.Entered(me.id, me.id, code))
        self._ports.emit(ev.SettingsChanged(self._ports.settings))
        outside = self._ports.outside
        creator = Creator(CreatorPorts(me, outside.clock, self._ports.emit, self._ports.label), self._ports.settings)
        self._creator = creator
        if outside.compute is None:
            return
        dealing = DealingPorts(
            crowd=creator,
            compute=SerialCompute(outside.compute),
            clock=outside.clock,
            table=outside.table,
            open_language=outside.open_language,
            settings=lambda: creator.settings,
        )
        self._copies = self._ports.copies(code)
        self._model_host = creator.model_host = ModelHost(dealing, outside.choose, self._copies)

    def _waiting(self, waiting: Waiting) -> None:
        meta = read_meta(waiting.meta)
        request = WaitingRequest(
            id=waiting.peer_id,
            name=waiting.name,
            kind=kind_of(meta),
            gb=pledge_gb(meta),
            chat_only=not meta.webgpu,
            digits=waiting.digits,
        )
        self._ports.emit(ev.WaitingAdded(request))

    def _arrived(self, link: Link, hello: Message) -> None:
        if self._creator is not None:
            self._creator.arrived(link, hello)

    def handle(self, intent: Intent, state: RoomState) -> None:
        creator = self._creator
        if creator is None:
            return
        match intent:
            case it.Allow():
                self._transport.allow(intent.id)
            case it.Deny():
                self._transport.deny(intent.id)
                self._ports.emit(ev.WaitingGone(intent.id))
            case it.Disconnect():
                creator.disconnect(intent.id, "The room's owner disconnected this device.")
            case it.SetPledge():
                self._meta = self._ports.meta(intent.gb)
                creator.set_own_meta(self._meta)
                self._transport.set_hello(self._hello())
            case it.ChangeSettings():
                creator.set_settings(intent.settings)
                self._transport.set_ask(intent.settings.ask_first)
                self._ports.emit(ev.SettingsChanged(intent.settings))
            case _ if self._model_host is not None:
                self._with_model(self._model_host, creator, intent, state)
            case it.Start() | it.Ask():
                creator.show(m.StartRefused(why=NO_MODEL_HOST))
            case _:
                pass

    def _with_model(self, model_host: ModelHost, creator: Creator, intent: Intent, state: RoomState) -> None:
        me, name = creator.me, self._name
        match intent:
            case it.Start():
                model_host.start(StartWish(state.chosen, state.context, name), me)
            case it.StopStart():
                model_host.dealing.give_up(f"{name} stopped the model.")
            case it.Ask():
                model_host.talk.ask(me, name, intent.text)
            case it.Stop():
                model_host.talk.stop(me)
            case it.Typing():
                model_host.said(creator.own, m.Typing())
            case _:
                model_host.command(me, name, COMMANDS.get(type(intent), ""))

    def tick(self) -> None:
        if self._creator is not None:
            self._creator.tick()

    async def close(self) -> None:
        if self._creator is not None:
            self._creator.close_room()
        if self._model_host is not None:
            await self._model_host.close()
            await self._copies.drop_all()
        await self._transport.close()


COMMANDS: dict[type, str] = {
    it.Continue: "continue",
    it.Regenerate: "regen",
    it.NewChat: "new",
    it.Redeal: "redeal",
}


class MemberSeat:
    """A place in somebody else's room; knocks again when the creator is lost."""

    def __init__(self, ports: SeatPorts, intent: it.JoinRoom) -> None:
        self._ports = ports
        self._where = intent.where
        self._name = clean_name(intent.name, "otter")
        self._meta = ports.meta(intent.gb)
        self._code = ""
        self._credentials = Credentials()
        self._transport: RoomTransport | None = None
        self._session: MemberSession | None = None
        self._tasks = Tasks()
        self._lost_at: float | None = None
        self._knocked_at = 0.0
        self._knocking: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        invite = parse_invite(self._where)
        self._code = invite.code
        self._credentials = Credentials(invite.key, self._ports.outside.passes.get(invite.code), invite.fingerprint)
        self._ports.emit(ev.Connecting(invite.code, LINES[Phase.REGISTERING]))
        transport = self._transport = self._ports.outside.new_transport(invite.signal)
        transport.on_state = self._progress
        transport.on_link = self._linked
        await self._join(transport, back=False)

    async def _join(self, transport: RoomTransport, *, back: bool) -> None:
        joined = await transport.join(self._code, self._credentials, self._hello(back=back))
        text = joined.pass_text
        if text:
            self._credentials = replace(self._credentials, pass_text=text)
            self._ports.outside.passes.put(self._code, text)

    def _hello(self, *, back: bool) -> Message:
        hello: dict[str, object] = {"name": self._name, "meta": meta_map(self._meta)}
        return {**hello, "back": 1} if back else hello

    def _progress(self, state: TransportState) -> None:
        if self._session is not None:
            return
        if state.phase is Phase.LOBBY:
            self._ports.emit(ev.InLobby(state.digits))
        elif state.phase in LINES:
            self._ports.emit(ev.Connecting(self._code, LINES[state.phase]))

    def _linked(self, link: Link, _hello: Message) -> None:
        if link.peer_id != creator_id(self._code):
            if self._session is not None:
                self._session.neighbour(link)
            return
        if self._session is None:
            self._session = self._begin(link)
        else:
            self._lost_at = None
            self._ports.emit(ev.CreatorFound())
        self._session.connected(link)

    def _begin(self, link: Link) -> MemberSession:
        me = self._transport.me if self._transport else ""
        self._ports.emit(ev.Entered(me, link.peer_id, self._code))
        self._ports.emit(ev.InviteMade(ShownInvite(self._code)))
        session = MemberSession(
            MemberPorts(
                me=me,
                creator=link.peer_id,
                clock=self._ports.outside.clock,
                emit=self._ports.emit,
                label=self._ports.label,
                lost=self._creator_lost,
                over=self._room_over,
            )
        )
        session.worker = self._worker(session)
        return session

    def _worker(self, session: MemberSession) -> Worker | None:
        outside = self._ports.outside
        if outside.compute is None:
            return None
        worker = Worker(
            WorkerPorts(
                me=self._transport.me if self._transport else "",
                compute=SerialCompute(outside.compute),
                clock=outside.clock,
                table=outside.table,
                dial=self._dial,
                tell=session.tell,
                host_link=lambda: session.creator_link,
                copies=self._ports.copies(self._code),
            ),
            pledge_bytes=lambda: int(pledge_gb(self._meta) * GIB),
        )
        worker.start()
        return worker

    async def _dial(self, peer_id: str, fresh: bool) -> Link:
        if self._transport is None:
            raise PooledError("This device is not in a room.")
        return await self._transport.dial(peer_id, fresh)

    def _creator_lost(self) -> None:
        self._lost_at = self._ports.outside.clock.now()
        self._knocked_at = self._lost_at - KNOCK_PERIOD

    def _room_over(self) -> None:
        self._lost_at = None
        if self._session is not None and self._session.worker is not None:
            self._session.worker.stop_load()
            self._tasks.start(self._ports.copies(self._code).drop_all(), "forget the room")

    def tick(self) -> None:
        if self._session is not None:
            self._session.tick()
        if self._lost_at is not None:
            self._knock(self._lost_at, self._ports.outside.clock.now())

    def _knock(self, lost_at: float, now: float) -> None:
        if now - lost_at > KNOCK_SECONDS:
            self._ports.emit(ev.RoomEnded("The room's owner did not come back.", "Open a new room."))
            self._room_over()
        elif now - self._knocked_at >= KNOCK_PERIOD and (self._knocking is None or self._knocking.done()):
            self._knocked_at = now
            self._knocking = self._tasks.start(self._knock_once(), "knock")

    async def _knock_once(self) -> None:
        if self._transport is None:
            return
        try:
            await self._join(self._transport, back=True)
        except NotLetIn as error:
            self._ports.emit(ev.RoomEnded(error.what, error.remedy))
            self._room_over()
        except PooledError as error:
            log.info("knocking: %s", error)

    def handle(self, intent: Intent, state: RoomState) -> None:
        session = self._session
        if session is None:
            return
        match intent:
            case it.SetPledge():
                self._meta = self._ports.meta(intent.gb)
                session.tell(m.Pledge(gb=self._meta.contrib_gb))
            case it.Start():
                wish = m.StartRequest(model=state.chosen, boss=state.creator, by=session.name, ctx=state.context)
                session.tell(wish)
            case it.Ask():
                session.tell(m.Ask(text=intent.text))
            case it.Stop():
                session.tell(m.StopAnswer())
            case it.Typing():
                session.tell(m.Typing())
            case _ if type(intent) in COMMANDS:
                session.tell(m.Command(cmd=COMMANDS[type(intent)]))
            case _:
                pass

    async def close(self) -> None:
        await self._tasks.close()
        if self._session is not None:
            self._session.leave()
            await self._session.close()
        if self._transport is not None:
            await self._transport.close()
