"""The device that runs the model: its dealing, its conversation, and whose messages reach which."""

from __future__ import annotations

from collections.abc import Callable

from app.room import messages as m
from app.room.answer_ports import AnswerPorts
from app.room.answering import Answering
from app.room.api.desk import AskDesk
from app.room.copies import Copies
from app.room.crowd import Crowd
from app.room.dealing import Dealing, DealingPorts, Stage
from app.room.events import Event, Member
from app.room.figures import Figures
from app.room.frame import Frame
from app.room.generate import Choose
from app.room.liveness import Role
from app.room.past import Past
from app.room.saves import Saves
from app.room.screens import Screens
from app.room.settings import RoomSettings
from app.room.styles import read_style, style_message
from app.room.talk import Talk
from app.room.turns import Turns
from app.room.writer import Writer


class ModelHost:
    """Runs the room's model. Everything it says goes through its crowd."""

    def __init__(self, ports: DealingPorts, choose: Choose, copies: Copies, past: Past) -> None:
        self.dealing = dealing = Dealing(ports)
        self._saves = Saves(ports.compute, copies)
        self._writer = writer = Writer(dealing, self._saves, choose, ports.clock, self._happened)
        self._turns = Turns(lambda: self.stage is Stage.ONLINE, lambda: writer.most)
        self._figures = Figures(ports.crowd, dealing, ports.clock)
        self._screens = screens = Screens(ports.crowd, ports.settings)
        shared = AnswerPorts(ports.crowd, dealing, writer, self._turns, screens, self._figures, ports.settings)
        self.talk = Talk(shared, past)
        self.desk = AskDesk(shared)
        self._turns.on_change = self._queue_changed
        dealing.on_loaded = self._loaded
        dealing.on_online = self._online
        dealing.on_lost = writer.lost
        dealing.on_failed = self._failed
        self._crowd: Crowd = ports.crowd
        self._settings: Callable[[], RoomSettings] = ports.settings
        self._silent: frozenset[str] = frozenset()
        self._held_for: frozenset[str] = frozenset()

    def _happened(self, now: Answering, event: Event) -> None:
        """Figures stand beside the answer that is shown."""
        if self._screens.shows(now.shown):
            self._crowd.happened(event)

    async def _loaded(self) -> None:
        await self._saves.reload(self._settings().checkpoints)

    def _online(self) -> None:
        self._writer.online()
        self.talk.online()
        self._turns.next()

    def _failed(self, why: str) -> None:
        self.desk.ended(why)
        self.talk.ended()
        self._writer.ended(why)

    def _queue_changed(self) -> None:
        self.talk.queue_changed()
        self._crowd.tell(m.QueueLength(n=len(self._turns.waiting)))

    @property
    def answering(self) -> bool:
        return bool(self._turns.running)

    @property
    def stage(self) -> Stage:
        return self.dealing.stage

    def said(self, member: Member, message: m.Message) -> None:
        """A member's message, already known to count."""
        match message:
            case m.Ask() if message.rid:
                self.desk.asked(member, message)
            case m.Ask():
                style = read_style(message.style, self._settings().style) if message.style else None
                self.talk.ask(member.id, member.name, message.text, style, message.mid)
            case m.StopAnswer():
                self.stop(member.id, message.rid, message.mid)
            case m.Command():
                self.command(member.id, member.name, message.cmd)
            case _:
                self.dealing.said(member.id, message)

    def stop(self, by: str, rid: str = "", mid: str = "") -> None:
        """``rid``: only that ask of a program's; else what screens show being written, as long as it is ``mid``."""
        self.desk.stop(by, rid, mid)
        if not rid:
            self.talk.stop(by, mid)

    def command(self, id: str, name: str, command: str) -> None:
        match command:
            case "continue":
                self.talk.continue_last(id)
            case "regen":
                self.talk.regenerate(id)
            case "new":
                self.talk.new_chat(id, name)
            case "redeal":
                self.dealing.redeal(name)
            case "down" if id in {self._crowd.me, self._crowd.creator}:
                self.dealing.give_up(f"{name} stopped the model.")
            case _:
                pass

    def frame(self, frame: Frame, sender: str) -> None:
        if self.dealing.chain is not None:
            self.dealing.chain.returned(frame, sender)

    def role(self, member: Member | None) -> Role:
        """How patiently a member's silence is judged."""
        if member is not None and member.id in self.dealing.chain_ids:
            return Role.CHAIN_WHILE_STARTING if self.stage is Stage.STARTING else Role.CHAIN
        if member is not None and member.id == self._crowd.creator:
            return Role.CREATOR
        return Role.PHONE if member is not None and member.meta.is_phone else Role.COMPUTER

    def loading(self, id: str) -> bool:
        hop = self.dealing.chain.find(id) if self.dealing.chain else None
        return hop is not None and not hop.ready and self.stage is Stage.STARTING

    def silent(self, id: str, *, silent: bool) -> None:
        """Tells every screen; laps of a running answer wait for a silent device of the chain."""
        self._silent = self._silent | {id} if silent else self._silent - {id}
        self._hold()
        if id not in self._held_for:
            self._crowd.tell(m.Silent(id=id, silent=silent))

    def _hold(self) -> None:
        """An answer may also begin while a device is silent already."""
        chain = self.dealing.chain
        held_for = self._silent & self.dealing.chain_ids if self.answering else frozenset[str]()
        for id in held_for - self._held_for:
            self._crowd.tell(m.Silent(id=id, silent=True, hold=True))
        self._held_for = held_for
        if chain is not None:
            chain.laps.held = bool(held_for)

    def rtt(self, id: str, seconds: float) -> None:
        hop = self.dealing.chain.find(id) if self.dealing.chain else None
        if hop is not None:
            hop.rtt = seconds

    def greet(self, member: Member, *, back: bool) -> None:
        self.dealing.greet(member)
        self.talk.greet(member, back=back)
        if self._turns.waiting:
            self._crowd.send(member.id, m.QueueLength(n=len(self._turns.waiting)))

    def member_gone(self, id: str, *, final: bool) -> None:
        self._silent -= {id}
        self.talk.member_left(id)
        self.desk.member_left(id)
        self.dealing.device_gone(id, final=final)
        self._hold()

    def settings_changed(self, before: RoomSettings) -> None:
        """Tells everybody what of the creator's settings the protocol has a message for."""
        now = self._settings()
        if now.visibility is not before.visibility:
            self._crowd.tell(m.VisibilityIs(mode=now.visibility.value))
        if now.style != before.style:
            self._crowd.tell(style_message(now.style))

    def tick(self) -> None:
        self._hold()
        self.dealing.tick()
        self._writer.tick()
        now = self.talk.now or self.desk.now
        if now is not None:
            self._figures.tick(now)

    async def close(self) -> None:
        await self.desk.close()
        await self.talk.close()
        await self._saves.close()
        await self.dealing.close()
