"""A place in somebody else's room; knocks again when the creator is lost (spec: rooms §16.5, §26.2)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from app.core.errors import LinkError, PooledError
from app.room import events as ev
from app.room import intents as it
from app.room import messages as m
from app.room.codes import code_of, creator_id
from app.room.gate import Credentials
from app.room.handover import inherited
from app.room.intents import Intent
from app.room.invite import parse_invite
from app.room.member import MemberPorts, MemberSession
from app.room.meta import meta_map
from app.room.model_side import ModelSide
from app.room.names import clean_name
from app.room.near import Near, parse_near
from app.room.outside import Admitted, RoomTransport
from app.room.ports import Link, Message
from app.room.relays import read_lease_message
from app.room.saved_room import SavedJoin, SavedRoom
from app.room.seat import SeatPorts, talk_to_model
from app.room.state import Invite as ShownInvite
from app.room.state import RoomState
from app.room.tasks import Tasks
from app.room.transport import NotLetIn, Phase, TransportState

log = logging.getLogger(__name__)

KNOCK_PERIOD = 3.0
KNOCK_SECONDS = 60.0
YOUNG = 10.0
LINES = {
    Phase.REGISTERING: "Reaching the room server",
    Phase.DIALING: "Looking for the room",
    Phase.KNOCKING: "Found the room, knocking",
}


class MemberSeat:
    """Joins, follows, and comes back."""

    def __init__(self, ports: SeatPorts, intent: it.JoinRoom, died: m.Died | None = None) -> None:
        """``died``: what this device was doing when its program ended, for the model host to deal it less."""
        self._ports = ports
        self._where = intent.where
        self._name = clean_name(intent.name, "otter")
        self._gb = intent.gb
        self._meta = ports.meta(intent.gb)
        self._code = ""
        self._credentials = Credentials()
        self._transport: RoomTransport | None = None
        self._session: MemberSession | None = None
        self._tasks = Tasks()
        self._died = died
        self._over = False
        self._kept: SavedJoin | None = None
        self._agreed = False
        self._inherited: SavedRoom | None = None
        self._lost_at: float | None = None
        self._linked_at = 0.0
        self._knocked_at = 0.0
        self._knocking: asyncio.Task[None] | None = None

    @property
    def side(self) -> ModelSide | None:
        return self._session.side if self._session is not None else None

    async def enter(self) -> None:
        near = parse_near(self._where)
        if near is not None:
            await self._enter_near(near)
            return
        invite = parse_invite(self._where)
        self._code = invite.code
        self._credentials = Credentials(invite.key, self._ports.outside.passes.get(invite.code), invite.fingerprint)
        await self._join(self._connecting(invite.signal), back=False)

    async def _enter_near(self, near: Near) -> None:
        """The code is told with the admission, and is all that is needed from then on."""
        transport, self._where = self._connecting(""), ""
        self._admitted(await transport.join_near(near, self._hello(back=False)))

    def _connecting(self, signal: str) -> RoomTransport:
        self._ports.emit(ev.Connecting(self._code, LINES[Phase.REGISTERING]))
        transport = self._transport = self._ports.outside.new_transport(signal, "")
        transport.on_state = self._progress
        transport.on_link = self._linked
        return transport

    async def _join(self, transport: RoomTransport, *, back: bool) -> None:
        self._admitted(await transport.join(self._code, self._credentials, self._hello(back=back)))

    def _keep(self, session: MemberSession) -> None:
        """What a restart needs, the load it may die of included."""
        worker = session.side.worker
        loading = worker is not None and worker.loading
        saved = SavedJoin(self._code, self._name, self._gb, self._where, loading)
        if saved != self._kept:
            self._kept = saved
            self._ports.outside.memory.keep(lambda: saved)

    def _admitted(self, admitted: Admitted) -> None:
        self._died = None
        text = admitted.pass_text
        if text:
            self._credentials = replace(self._credentials, pass_text=text)
            self._ports.outside.passes.put(self._code, text)

    def _hello(self, *, back: bool) -> Message:
        hello: dict[str, object] = {"name": self._name, "meta": meta_map(self._meta)}
        if self._died is not None:
            hello["died"] = m.encode_part(self._died)
        return {**hello, "back": 1} if back else hello

    def _progress(self, state: TransportState) -> None:
        if self._session is not None:
            return
        if state.phase is Phase.LOBBY:
            self._ports.emit(ev.InLobby(state.digits))
        elif state.phase in LINES:
            self._ports.emit(ev.Connecting(self._code, LINES[state.phase]))

    def _linked(self, link: Link, _hello: Message) -> None:
        self._code = self._code or code_of(link.peer_id)
        if link.peer_id == creator_id(self._code):
            self._linked_at = self._ports.outside.clock.now()
            if self._session is None and self._transport is not None:
                self._session = self._begin(self._transport, link)
            elif self._session is not None:
                self._lost_at = None
                self._ports.emit(ev.CreatorFound())
                self._session.side.remind()
        if self._session is not None:
            self._session.connected(link)

    def _begin(self, transport: RoomTransport, link: Link) -> MemberSession:
        self._ports.emit(ev.Entered(transport.me, link.peer_id, self._code))
        self._ports.emit(ev.InviteMade(ShownInvite(self._code)))
        side = self._ports.side(self._code, transport, lambda: self._meta, self._dial)
        return MemberSession(
            MemberPorts(
                me=transport.me,
                creator=link.peer_id,
                side=side,
                lost=self._creator_lost,
                over=self._room_over,
                borrow=self._borrow,
                inherit=self._inherit,
                moved=self._moved,
            )
        )

    def _inherit(self, left: m.Estate) -> None:
        """Only after this device said yes. It opens the room once its creator has gone."""
        if self._transport is not None and self._agreed:
            self._inherited = inherited(left, self._code, self._name, self._gb, self._transport.identity)

    def _moved(self, fingerprint: str) -> None:
        """The next creator shows another certificate; the pass shows that it is the room's."""
        self._credentials, self._where = replace(self._credentials, fingerprint=fingerprint), self._code

    def _borrow(self, lease: m.RelayLease) -> None:
        if self._transport is not None:
            self._transport.relays.borrow(read_lease_message(lease))

    async def _dial(self, peer_id: str, fresh: bool) -> Link:
        if self._transport is None or self._session is None:
            raise PooledError("This device is not in a room.")
        if peer_id == self._session.creator:
            return await self._reach_creator(self._session, fresh=fresh)
        return await self._transport.dial(peer_id, fresh)

    async def _reach_creator(self, session: MemberSession, *, fresh: bool) -> Link:
        """The creator takes knocks only. A link that is young already is as good as a fresh one."""
        old = fresh and self._ports.outside.clock.now() - self._linked_at > YOUNG
        link = session.link(session.creator)
        if link is None or not link.open or old:
            await asyncio.shield(self._knock_now())
            link = session.link(session.creator)
        if link is None or not link.open:
            raise LinkError("The room's owner cannot be reached.")
        return link

    def _creator_lost(self) -> None:
        if self._inherited is not None:
            self._ports.take_over(self._inherited)
            return
        self._lost_at = self._ports.outside.clock.now()
        self._knocked_at = self._lost_at - KNOCK_PERIOD

    def _room_over(self) -> None:
        self._over, self._lost_at = True, None
        self._ports.outside.memory.forget()
        if self._session is not None:
            self._session.side.forget()
            self._tasks.start(self._ports.copies(self._code).drop_all(), "forget the room")

    def tick(self) -> None:
        if self._session is not None and not self._over:
            self._session.tick()
            self._keep(self._session)
        if self._lost_at is not None:
            self._knock(self._lost_at, self._ports.outside.clock.now())

    def _knock(self, lost_at: float, now: float) -> None:
        if now - lost_at > KNOCK_SECONDS:
            self._ports.emit(ev.RoomEnded("The room's owner did not come back.", "Open a new room."))
            self._room_over()
        elif now - self._knocked_at >= KNOCK_PERIOD:
            self._knock_now()

    def _knock_now(self) -> asyncio.Task[None]:
        """One at a time."""
        if self._knocking is None or self._knocking.done():
            self._knocked_at = self._ports.outside.clock.now()
            self._knocking = self._tasks.start(self._knock_once(), "knock")
        return self._knocking

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
            case it.AnswerHeir():
                self._answer_heir(session, intent.yes)
            case it.SetPledge():
                self._gb = intent.gb
                self._lend(session, paused=self._meta.paused)
            case it.PauseLending():
                self._lend(session, paused=intent.paused)
            case it.Start():
                session.start(state.chosen, state.context)
            case _:
                talk_to_model(session.side, intent)

    def _answer_heir(self, session: MemberSession, yes: bool) -> None:
        self._agreed = yes
        self._ports.emit(ev.HeirWanted(wanted=False))
        fingerprint = self._transport.fingerprint if self._transport else ""
        session.send(session.creator, m.HeirAnswer(yes=yes, fp=fingerprint))

    def _lend(self, session: MemberSession, *, paused: bool) -> None:
        self._meta = self._ports.meta(self._gb, paused=paused)
        session.lend(self._gb, paused=paused)

    async def close(self, *, final: bool) -> None:
        await self._tasks.close()
        if final:
            self._ports.outside.memory.forget()
        if self._session is not None:
            self._session.leave()
            await self._session.close()
        if self._transport is not None:
            await self._transport.close()
