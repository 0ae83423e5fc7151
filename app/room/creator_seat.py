"""The place of the device that owns a room: the door, the roster and the settings (spec: rooms §26.2)."""

from __future__ import annotations

from app.room import events as ev
from app.room import intents as it
from app.room import messages as m
from app.room.admission import Waiting
from app.room.codes import creator_id, random_code
from app.room.creator import Creator
from app.room.gate import Gate
from app.room.intents import Intent
from app.room.invite import Invite
from app.room.kinds import kind_of
from app.room.meta import meta_map, read_meta
from app.room.names import clean_name
from app.room.outside import RoomTransport
from app.room.pledges import pledge_gb
from app.room.ports import Link, Message
from app.room.seat import SeatPorts, talk_to_model
from app.room.state import Invite as ShownInvite
from app.room.state import RoomState, WaitingRequest


class CreatorSeat:
    """Owns a room."""

    def __init__(self, ports: SeatPorts, intent: it.OpenRoom) -> None:
        self._ports = ports
        self._name = clean_name(intent.name, "otter")
        self._meta = ports.meta(intent.gb)
        self._code = ""
        self._transport: RoomTransport = ports.outside.new_transport("")
        self._creator: Creator | None = None

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
        self._code = code
        me = ev.Member(creator_id(code), self._name, self._meta)
        self._ports.emit(ev.Entered(me.id, me.id, code))
        self._ports.emit(ev.SettingsChanged(self._ports.settings))
        side = self._ports.side(code, self._transport.dial, lambda: self._meta)
        self._creator = Creator(me, side, self._ports.settings)

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
            case it.Start():
                request = m.StartRequest(model=state.chosen, by=self._name, ctx=state.context)
                creator.starts.press(creator.me, self._name, request)
            case _:
                talk_to_model(creator.side, intent)

    def tick(self) -> None:
        if self._creator is not None:
            self._creator.tick()

    async def close(self) -> None:
        if self._creator is not None:
            self._creator.close_room()
            await self._creator.close()
            await self._ports.copies(self._code).drop_all()
        await self._transport.close()
