"""The device that runs the model: its dealing, its conversation, and whose messages reach which."""

from __future__ import annotations

from collections.abc import Callable

from app.core.errors import PooledError
from app.room import messages as m
from app.room.copies import Copies
from app.room.crowd import Crowd, tell_one
from app.room.dealing import Dealing, DealingPorts, Stage, StartWish
from app.room.events import Member
from app.room.frame import Frame
from app.room.generate import Choose
from app.room.liveness import Role
from app.room.saves import Saves
from app.room.settings import RoomSettings, Visibility
from app.room.talk import Talk


class ModelHost:
    """Runs the room's model. Everything it says goes through its crowd."""

    def __init__(self, ports: DealingPorts, choose: Choose, copies: Copies) -> None:
        self.dealing = Dealing(ports)
        self._saves = Saves(ports.compute, copies)
        self.talk = Talk(ports.crowd, self.dealing, self._saves, choose, ports.clock, ports.settings)
        self.dealing.on_loaded = self._loaded
        self._crowd: Crowd = ports.crowd
        self._settings: Callable[[], RoomSettings] = ports.settings
        self._silent: frozenset[str] = frozenset()
        self._held_for: frozenset[str] = frozenset()

    async def _loaded(self) -> None:
        await self._saves.reload(self._settings().checkpoints)

    @property
    def stage(self) -> Stage:
        return self.dealing.stage

    def start(self, wish: StartWish, asker: str) -> None:
        """A start that cannot be is refused to whoever pressed it."""
        try:
            self.dealing.start(wish)
        except PooledError as error:
            tell_one(self._crowd, asker, m.StartRefused(why=str(error)))

    def said(self, member: Member, message: m.Message) -> None:
        """A member's message, already known to count."""
        match message:
            case m.Ask():
                self.talk.ask(member.id, member.name, message.text)
            case m.StopAnswer():
                self.talk.stop(member.id)
            case m.Command():
                self.command(member.id, member.name, message.cmd)
            case m.StartRequest():
                self.start(StartWish(message.model, message.ctx, member.name), member.id)
            case m.Typing():
                self._pass_typing(member)
            case _:
                self.dealing.said(member.id, message)

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
            case _:
                pass

    def _pass_typing(self, typist: Member) -> None:
        if self._settings().visibility is not Visibility.EVERYONE:
            return
        self._crowd.show(m.Typing(name=typist.name))
        for member in self._crowd.members:
            if member.id not in {typist.id, self._crowd.me}:
                self._crowd.send(member.id, m.Typing(name=typist.name))

    def frame(self, frame: Frame, sender: str) -> None:
        if self.dealing.chain is not None:
            self.dealing.chain.returned(frame, sender)

    def role(self, member: Member | None) -> Role:
        """How patiently a member's silence is judged."""
        if member is not None and member.id in self.dealing.chain_ids:
            return Role.CHAIN_WHILE_STARTING if self.stage is Stage.STARTING else Role.CHAIN
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
        held_for = self._silent & self.dealing.chain_ids if self.talk.answering else frozenset[str]()
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

    def member_gone(self, id: str, *, final: bool) -> None:
        self._silent -= {id}
        self.talk.member_left(id)
        self.dealing.device_gone(id, final=final)
        self._hold()

    def tick(self) -> None:
        self._hold()
        self.dealing.tick()
        self.talk.tick()

    async def close(self) -> None:
        await self.talk.close()
        await self.dealing.close()
