"""The place of the device that owns a room: the door, the roster and the settings (spec: rooms §26.2)."""

from __future__ import annotations

from dataclasses import replace

from app.room import events as ev
from app.room import intents as it
from app.room import messages as m
from app.room.admission import Waiting
from app.room.api.wire import API_LEVEL
from app.room.codes import creator_id, random_code
from app.room.creator import Creator
from app.room.dealing import StartWish
from app.room.gate import Gate
from app.room.handover import estate
from app.room.intents import Intent
from app.room.invite import Invite
from app.room.kinds import kind_of
from app.room.meta import meta_map, read_meta
from app.room.model_side import ModelSide
from app.room.names import clean_name
from app.room.outside import RoomTransport
from app.room.past import read_past
from app.room.pledges import pledge_gb
from app.room.ports import Link, Message
from app.room.relays import Lease, lease_message
from app.room.saved_room import SavedRoom, SavedWish, read_gate, saved_gate
from app.room.seat import SeatPorts, talk_to_model
from app.room.settings import RoomSettings
from app.room.state import Invite as ShownInvite
from app.room.state import RoomState, WaitingRequest
from app.room.styles import read_rules, rules

NOBODY = ("", "")


class CreatorSeat:
    """Owns a room, a new one or, with ``saved``, the one it had before a restart."""

    def __init__(self, ports: SeatPorts, intent: it.OpenRoom, saved: SavedRoom | None = None) -> None:
        self._ports = ports
        self._name = clean_name(intent.name, "otter")
        self._gb = intent.gb
        self._meta = ports.meta(intent.gb)
        self._saved = saved
        self._code = saved.code if saved else random_code()
        self._gate = read_gate(saved.gate) if saved else _new_gate(ports.settings)
        self._transport: RoomTransport = ports.outside.new_transport("", saved.identity if saved else "")
        self._creator: Creator | None = None
        self._kept: tuple[object, ...] = ()
        self._handed = False

    async def enter(self) -> None:
        self._ports.emit(ev.Connecting(self._code, "Opening the room again" if self._saved else "Opening the room"))
        self._listen()
        again = self._saved is not None
        await self._transport.open_room(self._code, self._gate, self._hello(), again)
        creator = self._creator = self._open()
        self._lend_relays(creator)
        creator.on_heir = lambda heir, answer: self._hand_over(creator, heir, answer)
        link = self._ports.outside.link_of(Invite(self._code, self._gate.key, fingerprint=self._transport.fingerprint))
        self._ports.emit(ev.InviteMade(ShownInvite(self._code, link, has_key=True)))
        if self._saved is not None:
            self._resume(creator, self._saved)

    def _listen(self) -> None:
        self._transport.on_waiting = self._waiting
        self._transport.on_withdrawn = lambda id: self._ports.emit(ev.WaitingGone(id))
        self._transport.on_link = self._arrived
        self._transport.on_gate = self._gate_changed

    def _hello(self) -> Message:
        """``api`` tells programs which form of asks the room reads."""
        return {"name": self._name, "meta": {**meta_map(self._meta), "api": API_LEVEL}}

    @property
    def side(self) -> ModelSide | None:
        return self._creator.side if self._creator is not None else None

    def _open(self) -> Creator:
        me = ev.Member(creator_id(self._code), self._name, self._meta)
        settings = self._ports.settings
        if self._saved is not None:
            settings = replace(read_rules(self._saved.rules, settings), ask_first=self._gate.ask)
        self._ports.emit(ev.Entered(me.id, me.id, self._code))
        self._ports.emit(ev.SettingsChanged(settings))
        side = self._ports.side(self._code, self._transport, lambda: self._meta, self._transport.dial)
        return Creator(me, side, settings)

    def _resume(self, creator: Creator, saved: SavedRoom) -> None:
        past = creator.side.past = read_past(saved.past)
        creator.show(m.History(items=past.history))
        if saved.wish is not None:
            wish = StartWish(saved.wish.model, saved.wish.context, saved.wish.by)
            holders = frozenset(saved.holders) - {self._name} if saved.holders else None
            creator.starts.resume(wish, saved.host, holders)

    # -- kept for a restart ---------------------------------------------------------------------------------

    def _gate_changed(self, gate: Gate) -> None:
        self._gate = gate

    def _keep(self, creator: Creator) -> None:
        """Everything a restart needs, whenever some of it has changed."""
        side, starts, identity = creator.side, creator.starts, self._transport.identity
        host, holders = _who_runs(creator)
        now = (side.past, creator.settings, starts.wish, host, holders, self._gate, self._gb)
        if now == self._kept:
            return
        self._kept = now
        past, settings, gate = side.past, creator.settings, self._gate
        wish = SavedWish(starts.wish.model, starts.wish.context, starts.wish.by) if starts.wish else None
        self._ports.outside.memory.keep(
            lambda: SavedRoom(
                code=self._code,
                name=self._name,
                gb=self._gb,
                gate=saved_gate(gate),
                identity=identity,
                rules=rules(settings),
                past=past.message(),
                wish=wish,
                host=host,
                holders=holders,
            )
        )

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

    def _lend_relays(self, creator: Creator) -> None:
        def lend(lease: Lease) -> None:
            creator.lend_relays(lease_message(lease))

        relays = self._transport.relays
        relays.on_lease = lend
        if relays.lease is not None:
            lend(relays.lease)

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
            case it.HandOver():
                creator.ask_heir(intent.id)
            case it.SetPledge():
                self._gb = intent.gb
                self._lend(creator, paused=self._meta.paused)
            case it.PauseLending():
                self._lend(creator, paused=intent.paused)
            case it.ChangeSettings():
                creator.set_settings(intent.settings)
                wanted = intent.settings
                self._transport.set_rules(ask=wanted.ask_first, api_clients=wanted.api_clients)
                self._ports.emit(ev.SettingsChanged(intent.settings))
            case it.Start():
                request = m.StartRequest(model=state.chosen, by=self._name, ctx=state.context)
                creator.starts.press(creator.me, self._name, request)
            case _:
                talk_to_model(creator.side, intent)

    def _hand_over(self, creator: Creator, heir: ev.Member, answer: m.HeirAnswer) -> None:
        """The heir has agreed. Nothing of the room stays here, and nobody is told that it is over."""
        self._handed = True
        creator.hand_over(heir, estate(creator, self._gate, heir), answer.fp)
        self._ports.emit(ev.Noticed(f"{heir.name} owns the room now."))
        self._ports.leave()

    def _lend(self, creator: Creator, *, paused: bool) -> None:
        self._meta = self._ports.meta(self._gb, paused=paused)
        self._transport.set_hello(self._hello())
        creator.lend(self._meta)

    def tick(self) -> None:
        if self._creator is not None:
            self._creator.tick()
            self._keep(self._creator)

    async def close(self, *, final: bool) -> None:
        """A room that is left is over; one whose program ends can be opened again."""
        creator = self._creator
        if creator is not None:
            self._keep(creator)
            if final and not self._handed:
                creator.close_room()
            await creator.close()
        if final:
            self._ports.outside.memory.forget()
            await self._ports.copies(self._code).drop_all()
        await self._transport.close()


def _new_gate(settings: RoomSettings) -> Gate:
    return Gate(ask=settings.ask_first, api_clients=settings.api_clients)


def _who_runs(creator: Creator) -> tuple[tuple[str, str], tuple[str, ...]]:
    """The device that runs the model, where it is another one, and who holds layers; or whom a start waits for."""
    side, starts = creator.side, creator.starts
    if starts.lost is not None:
        return (starts.lost.id, starts.lost.name), side.holders
    if starts.waits:
        return NOBODY, tuple(sorted(starts.awaited))
    return NOBODY if side.hosts else (side.host_id, creator.name_of(side.host_id)), side.holders
