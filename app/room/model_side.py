"""What one device does about the room's model: runs it, holds layers for another, or only follows (rooms §10)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from aiortc import RTCCertificate

from app.core.clock import Clock
from app.core.errors import PooledError
from app.models.table import ModelRecord, Models
from app.prompt.language import Language
from app.room import messages as m
from app.room.api.client import AskClient, ClientPorts
from app.room.api.events import ServedModel
from app.room.authority import Viewpoint
from app.room.copies import Copies
from app.room.crowd import Crowd, tell_one
from app.room.dealing import DealingPorts, StartWish
from app.room.events import Degraded, Event, Member
from app.room.following import Course, Following
from app.room.frame import Frame
from app.room.generate import Choose
from app.room.liveness import Role
from app.room.meta import OURS
from app.room.model_host import ModelHost
from app.room.names import readable
from app.room.past import Past
from app.room.ports import Compute, Link
from app.room.round_trips import RoundTrips
from app.room.screen import View, to_events
from app.room.serial import SerialCompute
from app.room.settings import RoomSettings, Visibility
from app.room.styles import style_words
from app.room.tasks import Tasks
from app.room.watcher import Watching
from app.room.weights.exchange import WeightExchange, WeightPorts
from app.room.worker import Dial, Worker, WorkerPorts

NO_MODEL = "No model runs in this room yet."
NOT_HERE = "This device does not run the model."


@dataclass(frozen=True)
class SidePorts:
    """``compute`` None: this device only asks. ``pledge`` is what it lends, in bytes. ``certificate`` is what its
    links show, ``relayed`` whether a relay is set up, ``on_disk`` which models are whole on this computer."""

    clock: Clock
    emit: Callable[[Event], None]
    label: Callable[[str], str]
    table: Models
    compute: Compute | None
    open_language: Callable[[ModelRecord], Awaitable[Language]]
    choose: Choose
    copies: Callable[[], Copies]
    dial: Dial
    pledge: Callable[[], int]
    certificate: RTCCertificate | None = None
    relayed: Callable[[], bool] = lambda: False
    weights_from_room: Callable[[], bool] = lambda: True
    on_disk: Callable[[], Collection[str]] = tuple


class ModelSide:
    """One a device. ``past`` is the conversation as far as it is known here; ``on_past`` hears of changes.

    ``holders`` are names of the devices that layers were dealt to; ``runs`` is what the model host last said of the
    model, while it runs.
    """

    def __init__(self, ports: SidePorts, crowd: Crowd, settings: Callable[[], RoomSettings]) -> None:
        self.on_past: Callable[[Past], None] = lambda _past: None
        self.following = Following()
        self.past = Past()
        self.host: ModelHost | None = None
        self.answering = False
        self._seen = ""
        self.holders: tuple[str, ...] = ()
        self._ports = ports
        self._crowd = crowd
        self._settings = settings
        self._compute = SerialCompute(ports.compute) if ports.compute is not None else None
        self.weights = WeightExchange(self._weight_ports())
        self.worker = self._new_worker(self._compute) if self._compute else None
        self.asks = AskClient(ClientPorts(ports.clock, self._send_ask, self._reaches_host, self._host_is_ours))
        self._tasks = Tasks()
        self._round_trips = RoundTrips()
        self.runs: m.ReadyAll | None = None
        self._unheard: dict[str, m.Ask] = {}
        self._beginning: asyncio.Task[None] | None = None
        self._retiring: asyncio.Task[None] | None = None

    def _weight_ports(self) -> WeightPorts:
        ports, crowd = self._ports, self._crowd
        return WeightPorts(
            me=crowd.me,
            clock=ports.clock,
            table=ports.table,
            links=lambda: [link for member in crowd.members if (link := crowd.link(member.id))],
            dial=ports.dial,
            ours=lambda id: any(member.id == id and member.meta.native == OURS for member in crowd.members),
            model_host=lambda: self.host_id,
            answering=lambda: self.answering,
            relay_configured=ports.relayed,
            allowed=ports.weights_from_room,
            certificate=ports.certificate,
        )

    def _new_worker(self, compute: Compute) -> Worker:
        worker = Worker(
            WorkerPorts(
                me=self._crowd.me,
                compute=compute,
                clock=self._ports.clock,
                table=self._ports.table,
                dial=self._ports.dial,
                tell=lambda message: self._crowd.send(self.host_id, message),
                host_link=lambda: self._crowd.link(self.host_id),
                copies=self._ports.copies(),
                lenders=self.weights.lenders,
            ),
            pledge_bytes=self._ports.pledge,
        )
        worker.start()
        return worker

    def _new_host(self, compute: Compute) -> ModelHost:
        dealing = DealingPorts(
            crowd=self._crowd,
            compute=compute,
            clock=self._ports.clock,
            table=self._ports.table,
            open_language=self._ports.open_language,
            settings=self._settings,
            lenders=self.weights.lenders,
            inventories=self.weights.inventories,
            round_trips=self._round_trips.usual,
            on_disk=self._ports.on_disk,
        )
        host = ModelHost(dealing, self._ports.choose, self._ports.copies(), self.past)
        host.talk.on_past = self.heard_past
        return host

    def heard_past(self, past: Past) -> None:
        """The conversation as whoever runs the model tells it, this device included."""
        self.past = past
        self.on_past(past)

    # -- who runs it ----------------------------------------------------------------------------------------

    @property
    def host_id(self) -> str:
        """Whom this device follows, itself included; the creator while nobody was named."""
        return self.following.host or self._crowd.creator

    @property
    def hosts(self) -> bool:
        return self.host_id == self._crowd.me

    @property
    def running(self) -> ModelHost | None:
        """The model host, where it is this device."""
        return self.host if self.hosts else None

    @property
    def view(self) -> Viewpoint:
        chain = self.running.dealing.chain_ids if self.running else frozenset[str]()
        return Viewpoint(self._crowd.me, self._crowd.creator, self.following.host, chain)

    def start(self, host: str, wish: StartWish) -> None:
        """A start that counts names ``host``, which may be this device."""
        self.following = self.following.start(host, self._ports.clock.now())
        if host != self._crowd.me:
            self._retire()
        elif self._compute is not None:
            self._beginning = self._tasks.start(self._begin(self._compute, wish), "begin to run the model")

    def expect(self, host: str) -> None:
        """A model host is back and is to say that it goes on."""
        self.following = self.following.start(host, self._ports.clock.now())

    def named(self, host: str) -> None:
        """The creator says who runs the model."""
        self.following = self.following.named(host, self._ports.clock.now())
        if host != self._crowd.me:
            self._retire()
        self.remind()

    def _retire(self) -> None:
        """Another device runs the model from now on, or none."""
        if self._beginning is not None:
            self._beginning.cancel()
            self._beginning = None
        host, self.host = self.host, None
        if host is not None:
            self._retiring = self._tasks.start(host.close(), "stop running the model")

    def _load(self, worker: Worker, load: m.Load) -> None:
        """Not before what ran here has freed its memory."""
        if self._retiring is None or self._retiring.done():
            worker.load(load)
        else:
            self._retiring.add_done_callback(lambda _done: worker.load(load))

    async def _begin(self, compute: Compute, wish: StartWish) -> None:
        if self.worker is not None:
            self.worker.stop_load()
        await self._crowd.reach()
        host = self.host = self.host or self._new_host(compute)
        host.talk.adopt(self.past)
        try:
            host.dealing.start(wish)
        except PooledError as error:
            self._crowd.tell(m.StartFailed(why=m.line(str(error))))

    # -- what is said ---------------------------------------------------------------------------------------

    def said(self, member: Member, message: m.Message) -> None:
        """A message that counts, from somebody of the room."""
        if isinstance(message, m.Typing) and self.hosts:
            self._pass_typing(member)
        elif isinstance(message, m.StartFailed | m.StartRefused):
            self._creator_says_no(message)
        elif self.running is not None:
            self.running.said(member, message)
        elif isinstance(message, m.Ask | m.Command):
            self._crowd.send(member.id, self._not_here(message))
        else:
            self._obey(message)

    def _not_here(self, message: m.Ask | m.Command) -> m.Busy:
        why = NO_MODEL if self.hosts else NOT_HERE
        if isinstance(message, m.Ask):
            return m.Busy(why=why, mid=message.mid, rid=message.rid, code="gone" if message.rid else "")
        return m.Busy(why=why)

    def _pass_typing(self, typist: Member) -> None:
        """Everybody but the typist sees it, where everybody reads."""
        if self._settings().visibility is not Visibility.EVERYONE:
            return
        for member in self._crowd.members:
            if member.id != typist.id:
                tell_one(self._crowd, member.id, m.Typing(name=typist.name))

    def _creator_says_no(self, message: m.StartFailed | m.StartRefused) -> None:
        """Whoever runs the model ends it where the creator gave it up."""
        if isinstance(message, m.StartFailed):
            self._retire()
        self._obey(message)

    def _obey(self, message: m.Message) -> None:
        """A word of the followed model host."""
        worker = self.worker
        match message:
            case m.Load() if worker is not None:
                self._load(worker, message)
            case m.Load():
                self._crowd.send(self.host_id, m.DeviceError(message="This device cannot hold layers.", load=True))
            case m.Next() if worker is not None:
                worker.next(message)
            case m.Layers() if worker is not None:
                worker.dealt(message.by, self._own_name())
            case m.StartFailed() if worker is not None:
                worker.stop_load()
            case m.CheckpointLoad():
                self._crowd.send(self.host_id, m.CheckpointsLoaded())
            case _:
                pass
        self.show(message)

    def _own(self) -> Member | None:
        return next((member for member in self._crowd.members if member.id == self._crowd.me), None)

    def _own_name(self) -> str:
        own = self._own()
        return own.name if own else ""

    def show(self, message: m.Message) -> None:
        """What a model host's message means for this device's screen and for whom it follows."""
        if self.asks.heard(message):
            return
        if isinstance(message, m.RoomMap):
            self.asks.alive()
        self._observe(message)
        view = View(self.host_id, self._settings(), self._ports.label)
        for event in to_events(message, view):
            self._ports.emit(event)

    def _observe(self, message: m.Message) -> None:
        match message:
            case m.Redeal() | m.StartRequest():
                self.following, self.runs = self.following.dealt(), None
            case m.Layers():
                self.holders = tuple(message.by)
                self._begun()
            case m.Load() | m.HostProgress():
                self._begun()
            case m.ReadyAll():
                self.following, self.runs = self.following.online(), message
                self._ask_again()
            case m.StartFailed():
                self.following, self.answering, self.runs = Following(), False, None
                self._unheard.clear()
                self.asks.gone()
            case m.Degraded():
                self.runs = None
            case m.AnswerStart():
                self.answering, self._seen = True, message.mid
                self._unheard.pop(message.mid, None)
            case m.AnswerDone():
                self.answering = False
            case m.Queued() | m.Busy() if self._unheard:
                self._unheard.pop(message.mid or next(iter(self._unheard)), None)
            case m.History():
                for item in message.items:
                    self._unheard.pop(item.mid, None)
            case m.ChatReset():
                self._unheard.clear()
            case _:
                pass

    def _begun(self) -> None:
        if self.following.course is Course.NAMED:
            self.following = self.following.dealt()

    def remind(self) -> None:
        """Somebody is back, and the model on a device that is not the creator has run on meanwhile."""
        if self.host_id != self._crowd.creator and self.runs is not None:
            self.show(self.runs)

    def frame(self, frame: Frame, sender: str) -> None:
        if self.running is not None:
            self.running.frame(frame, sender)
        elif self.worker is not None:
            self.worker.frame(frame, sender)

    # -- who comes and goes ---------------------------------------------------------------------------------

    def greet(self, member: Member, *, back: bool) -> None:
        """A device that can be reached now."""
        if self.running is not None:
            self.running.greet(member, back=back)

    def link_gone(self, id: str, *, final: bool = False) -> None:
        self._round_trips.forget(id)
        if id == self.host_id and not self.hosts:
            self.asks.gone()
        if self.worker is not None:
            self.worker.link_closed(id)
        if self.running is not None:
            self.running.member_gone(id, final=final)

    def host_gone(self, name: str) -> None:
        """The followed device left the room; the creator decides what becomes of the model."""
        if self.following.course is not Course.NONE:
            self._ports.emit(Degraded(f"{name}, which runs the model, is gone."))

    def silent(self, id: str, *, silent: bool) -> None:
        if self.running is not None:
            self.running.silent(id, silent=silent)
        elif id in {self.host_id, self._crowd.creator}:
            self.show(m.Silent(id=id, silent=silent, hold=self.answering and id == self.host_id))

    def rtt(self, link: Link, seconds: float) -> None:
        self._round_trips.add(link.peer_id, seconds)
        if self.running is not None:
            self.running.rtt(link.peer_id, seconds)
            if link.peer_id in self.running.dealing.chain_ids:
                self.weights.pacer.measured(seconds)

    def watching(self) -> Watching:
        """How this device judges the silence of others."""
        running = self.running
        if running is not None:
            members = {member.id: member for member in self._crowd.members}
            return Watching(lambda id: running.role(members.get(id)), running.loading, running.answering)
        return Watching(role=self._role, loading=lambda _id: False, answering=self.answering)

    def _role(self, id: str) -> Role:
        if id in {self.host_id, self._crowd.creator}:
            return Role.CHAIN if self._crowd.me == self._crowd.creator else Role.CREATOR
        member = next((member for member in self._crowd.members if member.id == id), None)
        return Role.PHONE if member is not None and member.meta.is_phone else Role.COMPUTER

    # -- what the person at this device does ----------------------------------------------------------------

    @property
    def served(self) -> ServedModel | None:
        """The model that runs, for programs."""
        runs = self.runs
        return ServedModel(runs.model, self._ports.label(runs.model), runs.ctx) if runs is not None else None

    def _send_ask(self, message: m.Message) -> None:
        own = self._own()
        if self.running is not None and own is not None:
            self.running.said(own, message)
        else:
            self._crowd.send(self.host_id, message)

    def _reaches_host(self) -> bool:
        link = self._crowd.link(self.host_id)
        return self.running is not None or (not self.hosts and link is not None and link.open)

    def _host_is_ours(self) -> bool:
        return any(member.id == self.host_id and member.meta.native == OURS for member in self._crowd.members)

    def ask(self, text: str) -> None:
        if self.running is not None:
            self.running.talk.ask(self._crowd.me, self._own_name(), text)
        elif self.hosts:
            self.show(m.Busy(why=NO_MODEL))
        else:
            ask = m.Ask(text=readable(text), style=style_words(self._settings().style), mid=secrets.token_hex(6))
            self._unheard[ask.mid] = ask
            self._crowd.send(self.host_id, ask)

    def _ask_again(self) -> None:
        """What the model host may not have heard before it was lost; it knows a question by its mid."""
        for ask in list(self._unheard.values()):
            if self.running is not None:
                self.running.talk.ask(self._crowd.me, self._own_name(), ask.text, mid=ask.mid)
            else:
                self._crowd.send(self.host_id, ask)

    def stop(self) -> None:
        if self.running is not None:
            self.running.stop(self._crowd.me)
        else:
            self._crowd.send(self.host_id, m.StopAnswer(mid=self._seen))

    def typing(self) -> None:
        own = self._own()
        if self.hosts and own is not None:
            self._pass_typing(own)
        else:
            self._crowd.send(self.host_id, m.Typing())

    def command(self, word: str) -> None:
        if self.running is not None:
            self.running.command(self._crowd.me, self._own_name(), word)
        else:
            self._crowd.send(self.host_id, m.Command(cmd=word))

    def lending_changed(self) -> None:
        """The roster says what each device lends now."""
        if self.running is not None:
            self.running.dealing.lending_changed()

    def free(self) -> None:
        """Layers held for another device go at once."""
        if self.worker is not None:
            self.worker.stop_load()

    def settings_changed(self, before: RoomSettings) -> None:
        if self.running is not None:
            self.running.settings_changed(before)

    # -- time -----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        self.weights.tick()
        self.asks.tick()
        if self.running is not None:
            self.running.tick()
        elif self._crowd.me != self._crowd.creator and self.following.overdue(self._ports.clock.now()):
            self.show(m.StartFailed(why="The device that was to run the model never began."))

    def forget(self) -> None:
        """The room is over: what this device holds of the model is freed."""
        self.following = Following()
        self.asks.gone()
        self._retire()
        self.free()

    async def close(self) -> None:
        self.asks.gone()
        await self._tasks.close()
        await self.weights.close()
        if self.host is not None:
            await self.host.close()
        if self.worker is not None:
            await self.worker.close()
