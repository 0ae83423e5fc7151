"""The creator's word on who runs the model: starts are checked and relayed, the host is named (spec: rooms §10.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.core.clock import Clock
from app.core.errors import PooledError
from app.models.table import Models
from app.room import dealt
from app.room import messages as m
from app.room.crowd import Crowd, tell_one
from app.room.dealing import REJOIN_GRACE, StartWish
from app.room.events import Degraded, Member, Noticed
from app.room.meta import OURS
from app.room.model_side import ModelSide
from app.room.pick import model_host_of
from app.room.picker import Wish, deal_order, plan
from app.room.settings import RoomSettings
from app.room.styles import rules

NO_MODEL_HOST = "No device here has a GPU to run a model on. Let one in that has."
STARTING = "A model is being started already. Wait for it, or stop it first."
RESUME_WITHIN = 25.0
MOVED_ON = "Other devices are here by now, so another one would run the model. Press Start again."


@dataclass(frozen=True)
class LostHost:
    """A model host that left while its model was wanted."""

    id: str
    name: str
    at: float
    final: bool = False


@dataclass(frozen=True)
class _Awaited:
    """Devices that held layers before the creator was restarted, and how long the start waits for them."""

    names: frozenset[str]
    until: float
    known: bool


@dataclass(frozen=True)
class StartsPorts:
    clock: Clock
    table: Models
    settings: Callable[[], RoomSettings]


class Starts:
    """Belongs to the creator. ``wish`` is the model the room was last started with, None when none is wanted."""

    def __init__(self, crowd: Crowd, side: ModelSide, ports: StartsPorts) -> None:
        self.wish: StartWish | None = None
        self._crowd = crowd
        self._side = side
        self._ports = ports
        self._presser = ""
        self._lost: LostHost | None = None
        self._awaited: _Awaited | None = None
        self._why = ""

    def press(self, presser: str, name: str, request: m.StartRequest) -> None:
        """Somebody pressed Start. ``request.boss`` is whom the presser expects to run it, "" for whoever it is."""
        boss, wish = model_host_of(self._crowd.members, self._crowd.me), StartWish(request.model, request.ctx, name)
        why = self._refusal(boss, request, wish)
        if why:
            tell_one(self._crowd, presser, m.StartRefused(why=why))
            return
        self._presser = presser
        self._relay(boss, wish)

    def _refusal(self, boss: str, request: m.StartRequest, wish: StartWish) -> str:
        host = self._find(boss)
        if host is None or not host.meta.webgpu:
            return NO_MODEL_HOST
        if self._side.following.starting:
            return STARTING
        if request.boss and request.boss != boss:
            return MOVED_ON
        return self._unfit(boss, wish) if self.wish is not None else ""

    def _unfit(self, boss: str, wish: StartWish) -> str:
        """What runs goes on when the other model could not take its place."""
        settings = self._ports.settings()
        try:
            record = self._ports.table.get(wish.model)
            members = deal_order(self._crowd.members, boss)
            planned = plan(record, members, Wish(wish.context, settings.split, kv=settings.kv))
        except PooledError as error:
            return str(error)
        return "" if planned.deal.fits else dealt.too_small(planned)

    def _relay(self, boss: str, wish: StartWish) -> None:
        self.wish, self._lost, self._awaited = wish, None, None
        host = self._find(boss)
        if host is not None and boss != self._crowd.me and host.meta.native == OURS:
            self._crowd.send(boss, rules(self._ports.settings()))
            if boss != self._side.following.host:
                self._crowd.send(boss, self._side.past.message())
        self._crowd.tell(m.StartRequest(model=wish.model, boss=boss, by=wish.by, ctx=wish.context))
        self._side.start(boss, wish)

    def _find(self, id: str) -> Member | None:
        return next((member for member in self._crowd.members if member.id == id), None)

    # -- what becomes of it -------------------------------------------------------------------------------------

    def refused(self, by: Member, refusal: m.StartRefused) -> None:
        """The device that was to run the model will not; whoever pressed hears it, and the start is over."""
        tell_one(self._crowd, self._presser or self._crowd.me, m.StartRefused(why=m.line(f"{by.name}: {refusal.why}")))
        self.give_up(f"{by.name} did not start the model.")

    def give_up(self, why: str) -> None:
        """Nobody runs the model any more."""
        self.wish, self._lost, self._awaited = None, None, None
        running = self._side.running
        if running is not None:
            running.dealing.give_up(why)
        else:
            self._crowd.tell(m.StartFailed(why=why))

    def told(self, message: m.Message) -> None:
        """What the model host tells everybody, as far as it ends or keeps the wish."""
        if isinstance(message, m.StartFailed):
            self.wish = None

    def welcome(self, member: Member, *, back: bool) -> None:
        """Everybody learns who runs the model; a model host that comes back takes its place again.

        One that is missed is still named to those that are back: for them it may never have been away.
        """
        lost = self._lost
        host = lost.id if lost is not None else self._side.following.host
        if lost is not None and back and member.id == lost.id:
            self._returned(member)
        elif lost is not None and not back and member.name == lost.name:
            self._again()
        elif back or host not in {"", self._crowd.me}:
            self._crowd.send(member.id, m.ModelHostIs(id=host))
        if self.waits:
            self._crowd.send(member.id, m.Degraded(why=self._why))

    def _returned(self, member: Member) -> None:
        """Its program still runs, and the model with it, unless its owner needs the GPU by now."""
        if not member.meta.webgpu:
            self._again()
            return
        self._lost = None
        self._side.expect(member.id)
        self._crowd.tell(m.ModelHostIs(id=member.id))

    @property
    def waits(self) -> bool:
        return self._lost is not None or self._awaited is not None

    @property
    def lost(self) -> LostHost | None:
        return self._lost

    @property
    def awaited(self) -> frozenset[str]:
        """Names of devices that a start waits for."""
        return self._awaited.names if self._awaited is not None else frozenset()

    def host_gone(self, member: Member, *, final: bool) -> None:
        """The device that ran the model left the room."""
        if self.wish is None:
            return
        self._lost = LostHost(member.id, member.name, self._ports.clock.now(), final)
        self._wait(f"{member.name}, which runs the model, is gone.")

    def resume(self, wish: StartWish, host: tuple[str, str], holders: frozenset[str] | None) -> None:
        """The creator was restarted. A model host elsewhere, (id, name), may run on; else the start waits for those
        that held layers, or as long as it may where that is not known."""
        now = self._ports.clock.now()
        self.wish = wish
        if host[0]:
            self._lost = LostHost(*host, at=now)
            waiting = host[1]
        else:
            self._awaited = _Awaited(holders or frozenset(), now + RESUME_WITHIN, known=holders is not None)
            waiting = ", ".join(sorted(holders)) if holders else "its devices"
        self._wait(f"The room is back and waits for {waiting}.")

    def _wait(self, why: str) -> None:
        self._why = why
        self._crowd.happened(Degraded(why))

    def _all_back(self, now: float) -> bool:
        awaited = self._awaited
        here = {member.name for member in self._crowd.members}
        return awaited is not None and ((awaited.known and awaited.names <= here) or now >= awaited.until)

    def tick(self) -> None:
        now = self._ports.clock.now()
        if self._all_back(now):
            self._again()
        elif self.wish is not None and not self._side.hosts and self._side.following.overdue(now):
            self.give_up("The device that was to run the model never began.")
        lost = self._lost
        if lost is None or not (lost.final or now - lost.at >= REJOIN_GRACE):
            return
        if self._ports.settings().auto_redeal:
            self._again()
        else:
            self.give_up(f"{lost.name}, which ran the model, did not come back.")

    def host_paused(self, host: Member) -> None:
        """The model moves to another device, if there is one, while its host needs its GPU."""
        if self.wish is None:
            return
        self._crowd.happened(Noticed(f"{host.name} paused lending; the model moves."))
        self._again()

    def _again(self) -> None:
        """The model is started on another device, with the same conversation."""
        wish, self._lost, self._awaited = self.wish, None, None
        boss = model_host_of(self._crowd.members, self._crowd.me)
        host = self._find(boss)
        if wish is None or host is None or not host.meta.webgpu:
            self.give_up(NO_MODEL_HOST)
        else:
            self._relay(boss, wish)
