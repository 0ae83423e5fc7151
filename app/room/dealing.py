"""Starting a model over the room and keeping it whole: load, loss, return, re-deal (spec: rooms §13, §16)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import msgspec

from app.core.clock import Clock
from app.core.errors import PooledError, RoomError
from app.core.units import GIB
from app.models.gather import Lenders
from app.models.table import ModelRecord, Models
from app.prompt.language import Language
from app.room import dealt
from app.room import messages as m
from app.room.chain import Chain, Hop
from app.room.checkpoints import counted_states
from app.room.crowd import Crowd
from app.room.events import Member, OwnLoad, RedealOffered
from app.room.laps import LapFailed
from app.room.picker import Plan, Wish, deal_order, plan
from app.room.pledges import pledge_gb, share_after_death
from app.room.ports import Compute, LoadRequest
from app.room.predict import Known, layer_ms
from app.room.settings import RoomSettings
from app.room.tasks import Tasks
from app.room.weights.names import url_of

REJOIN_GRACE = 60.0
RELINK_WAIT = 15.0
PROGRESS_PERIOD = 0.6
DROPPED = 0.0


class Stage(Enum):
    """Where the model of a room stands."""

    IDLE = "idle"
    STARTING = "starting"
    ONLINE = "online"
    DEGRADED = "degraded"


@dataclass(frozen=True)
class StartWish:
    """Which model somebody wants; ``context`` 0 leaves the length to the room."""

    model: str
    context: int = 0
    by: str = ""


async def _no_inventories(_url: str) -> dict[str, tuple[str, ...]]:
    return {}


@dataclass(frozen=True)
class DealingPorts:
    """What dealing needs from outside. ``lenders`` give weights, ``inventories`` says who has which of a file's,
    ``round_trips`` how many seconds it is to a device and back, by id; ``on_disk`` names models that are whole here."""

    crowd: Crowd
    compute: Compute
    clock: Clock
    table: Models
    open_language: Callable[[ModelRecord], Awaitable[Language]]
    settings: Callable[[], RoomSettings]
    lenders: Callable[[], Lenders | None] = lambda: None
    inventories: Callable[[str], Awaitable[dict[str, tuple[str, ...]]]] = _no_inventories
    round_trips: Callable[[], Mapping[str, float]] = dict[str, float]
    on_disk: Callable[[], Collection[str]] = tuple


class Dealing:
    """One model's life in a room, on the device that runs it."""

    def __init__(self, ports: DealingPorts) -> None:
        self.stage = Stage.IDLE
        self.chain: Chain | None = None
        self.planned: Plan | None = None
        self.language: Language | None = None
        self.on_online: Callable[[], None] = lambda: None
        self.on_lost: Callable[[LapFailed], None] = lambda _error: None
        self.on_failed: Callable[[str], None] = lambda _why: None
        self.on_loaded: Callable[[], Awaitable[None]] = _nothing
        self._ports = ports
        self._tasks = Tasks()
        self._start: asyncio.Task[None] | None = None
        self._wish: StartWish | None = None
        self._loaded: LoadRequest | None = None
        self._own_ready = False
        self._own_progress = 0.0
        self._lost_at = 0.0
        self._relink_until = 0.0
        self._told_progress_at = 0.0
        self._layer_ms: dict[str, dict[str, float]] = {}
        self._late: tuple[str, ...] = ()
        self._deaths: dict[str, int] = {}
        self._shares: dict[str, dealt.Dealt] = {}
        self._lowered: dict[str, float] = {}

    # -- starting ---------------------------------------------------------------------------------------

    def start(self, wish: StartWish, *, again: bool = False) -> None:
        """Begins at once; everybody has heard of a first start from the creator, of a re-deal it is told here.

        Raises RoomError while another start runs, unless this one replaces it.
        """
        if self.stage is Stage.STARTING and not again:
            raise RoomError("A model is being started already.", "Wait for it, or stop it first.")
        self._cancel()
        if self.chain is not None:
            self._end_chain(self.chain, another=not again)
        self.stage, self._wish = Stage.STARTING, wish
        if again:
            self._ports.crowd.tell(m.Redeal(by=wish.by, model=wish.model))
        self._start = self._tasks.start(self._run(wish), "model start", self._broke)

    def _end_chain(self, chain: Chain, *, another: bool) -> None:
        """An answer goes on after a re-deal, but not with another model."""
        why = "Another model is being started." if another else "The layers are dealt again."
        error = LapFailed(why, repairable=not another)
        chain.end(error)
        self.on_lost(error)

    def redeal(self, by: str) -> None:
        """Deals the running model again over who is here."""
        if self._wish is not None and self.stage is not Stage.IDLE:
            self.start(replace(self._wish, by=by), again=True)

    def give_up(self, why: str) -> None:
        """Ends a start, or the model that runs; everybody frees what was loaded."""
        if self.stage is not Stage.IDLE:
            self._cancel()
            self._tasks.start(self._fail(why), "model stop")

    def _broke(self, error: BaseException) -> None:
        """Nobody is left waiting for a start that met a fault of our own."""
        self.give_up(f"The model could not be started: {error}")

    def _cancel(self) -> None:
        if self._start is not None and self._start is not asyncio.current_task():
            self._start.cancel()
        self._start = None

    async def _run(self, wish: StartWish) -> None:
        try:
            await self._deal(wish)
        except PooledError as error:
            await self._fail(str(error))

    async def _fail(self, why: str) -> None:
        if self.chain is not None:
            self.chain.end(LapFailed(why, repairable=False))
        self.stage, self.chain, self.planned = Stage.IDLE, None, None
        self._own_ready, self._loaded = False, None
        self._ports.crowd.tell(m.StartFailed(why=m.line(why)))
        self.on_failed(why)
        with contextlib.suppress(PooledError):
            await self._ports.compute.unload()

    async def _deal(self, wish: StartWish) -> None:
        record = self._ports.table.get(wish.model)
        planned = self._plan(record, wish)
        self.language = await self._ports.open_language(record)
        self.planned, self._own_ready, self._own_progress = planned, False, 0.0
        self._shares |= dealt.by_name(planned)
        self.chain = Chain(
            self._ports.compute, record.hidden, self._hops(planned), self._ports.clock, hybrid=record.hybrid
        )
        self._neighbours()
        await self._stock(record, self.chain)
        for hop in self.chain.hops:
            self._ports.crowd.send(hop.id, hop.load)
        self._late = ()
        self._ports.crowd.tell(dealt.layers(planned))
        await self._load_own(planned)
        self._own_ready = True
        self._check()

    async def _stock(self, record: ModelRecord, chain: Chain) -> None:
        """Every load says where its weights may be had in the room; asked once, before the loads."""
        first = next(iter(record.files), None)
        inventory = await self._ports.inventories(url_of(first)) if first is not None and chain.hops else {}
        for hop in chain.hops:
            hop.load = msgspec.structs.replace(hop.load, inv=inventory)

    def _plan(self, record: ModelRecord, wish: StartWish) -> Plan:
        crowd = self._ports.crowd
        linked = [member for member in crowd.members if member.id == crowd.me or crowd.link(member.id)]
        members = self._trusted(deal_order(linked, crowd.me))
        settings = self._ports.settings()
        known = Known(crowd.me, self._ports.round_trips(), self._layer_ms)
        kept = counted_states(settings.checkpoints)
        draft = self._ports.table.find(record.draft) if record.draft in self._ports.on_disk() else None
        planned = plan(record, members, Wish(wish.context, settings.split, settings.kv, known, draft, kept))
        if not planned.deal.fits:
            raise RoomError(dealt.too_small(planned), "Lend more memory, or bring another device.")
        return planned

    def _trusted(self, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """Members that count, with the shares that were lowered after a death while loading."""
        shares = self._lowered
        return tuple(
            replace(member, meta=replace(member.meta, contrib_gb=shares.get(member.name, pledge_gb(member.meta))))
            for member in members
            if shares.get(member.name) != DROPPED
        )

    def died_loading(self, member: Member) -> None:
        """A device whose process ended while it loaded its share is dealt less next time, or nothing."""
        share = self._shares.get(member.name)
        if share is None:
            return
        deaths = self._deaths[member.name] = self._deaths.get(member.name, 0) + 1
        smaller = share_after_death(share.layers, share.layer_gb, share.pledge_gb, deaths)
        self._lowered[member.name] = DROPPED if smaller is None else smaller
        why = "Its program ended while it loaded its layers; it gets fewer."
        self._ports.crowd.send(member.id, m.Share(gb=smaller or 0.0, drop=smaller is None, why=why))
        if self.stage is Stage.DEGRADED:
            self.redeal("")

    def _hops(self, planned: Plan) -> list[Hop]:
        hops = dealt.loads(planned, self._ports.settings().precision)
        link = self._ports.crowd.link
        return [Hop(member.name, member.id, member.meta, load, link(member.id)) for member, load in hops]

    def _neighbours(self) -> None:
        """Every device's load names who sends to it and to whom it sends, by current ids."""
        hops = self.chain.hops if self.chain else ()
        ids = [self._ports.crowd.me, *(hop.id for hop in hops), m.MODEL_HOST]
        for i, hop in enumerate(hops):
            hop.load = msgspec.structs.replace(hop.load, host=ids[0], prev=ids[i], next=ids[i + 2])

    async def _load_own(self, planned: Plan) -> None:
        """An unchanged share stays on the GPU: position 0 starts afresh there."""
        request = dealt.own_request(planned)
        if request != self._loaded:
            self._loaded = None
            await self._ports.compute.load(replace(request, lenders=self._ports.lenders()), self._own_share)
            self._loaded = request
        await self.on_loaded()

    def _own_share(self, share: float) -> None:
        self._own_progress = share
        if self.planned is not None:
            total = self.planned.deal.held[0]
            self._ports.crowd.happened(OwnLoad("loading", int(share * total), total))

    def _check(self) -> None:
        """Online once the own share is in and every device of the chain is ready and linked."""
        if self.stage not in {Stage.STARTING, Stage.DEGRADED} or not self._own_ready:
            return
        if self.chain is None or self.planned is None or not self.chain.whole:
            return
        self.stage = Stage.ONLINE
        self._ports.crowd.tell(dealt.ready_all(self.planned))
        self.on_online()

    # -- what devices of the chain say ------------------------------------------------------------------

    @property
    def chain_ids(self) -> frozenset[str]:
        return frozenset(hop.id for hop in self.chain.hops) if self.chain else frozenset()

    def said(self, id: str, message: m.Message) -> None:
        """A message of a device of the chain."""
        hop = self.chain.find(id) if self.chain else None
        if hop is None:
            return
        match message:
            case m.Ready():
                hop.ready, hop.progress, hop.keeps = True, 1.0, message.ckpt
                hop.slots, hop.lost = set(message.slots), set()
                self._check()
            case m.CheckpointsLoaded():
                hop.lost |= set(message.lost)
                hop.slots -= hop.lost
            case m.LoadShare():
                hop.progress = min(max(message.pct / 100, 0.0), 1.0)
            case m.Telemetry():
                hop.timings = message.k
            case m.Linked():
                self._linked(hop, ok=message.ok)
            case m.LinkLost() if not message.up:
                self._link_lost(hop)
            case m.DeviceError():
                self._complained(hop, message)
            case _:
                pass

    def _linked(self, hop: Hop, *, ok: bool) -> None:
        hop.relinking = hop.relinking and not ok
        self._check()

    def _link_lost(self, hop: Hop) -> None:
        """Two devices that are both here lost each other: they are told to connect afresh."""
        if self.chain is None or self.stage is not Stage.ONLINE or not self.chain.whole:
            return
        self._degrade(f"{hop.name} lost its connection to the next device.", final=False)
        self._relink(hop)

    def _degrade(self, why: str, *, final: bool) -> None:
        self.stage = Stage.DEGRADED
        self._lost_at = self._ports.clock.now() - (REJOIN_GRACE if final else 0.0)
        self._broken(LapFailed(why))
        self._ports.crowd.tell(m.Degraded(why=why))
        self.on_lost(LapFailed(why))

    def rebuild(self, why: str) -> None:
        """This device's GPU is gone and its share with it; what there is now takes the same share."""
        if self.stage is not Stage.ONLINE:
            return
        self._own_ready, self._loaded = False, None
        self._degrade(why, final=False)
        self._start = self._tasks.start(self._reload_own(), "reload the own share")

    async def _reload_own(self) -> None:
        planned = self.planned
        try:
            if planned is not None:
                await self._load_own(planned)
                self._own_ready = True
                self._check()
        except PooledError as error:
            await self._fail(str(error))

    def _complained(self, hop: Hop, error: m.DeviceError) -> None:
        if error.load and self.stage is Stage.STARTING:
            self.give_up(f"{hop.name} could not load its layers: {error.message}")
        elif error.load and self.stage is Stage.ONLINE:
            hop.ready = False
            self._degrade(f"{hop.name} lost its layers: {error.message}", final=False)
        elif error.load:
            self._lowered[hop.name] = DROPPED
            self.redeal("")
        else:
            self._broken(LapFailed(f"{hop.name}: {error.message}"))

    def _broken(self, error: LapFailed) -> None:
        if self.chain is not None:
            self.chain.laps.fail_all(error)

    # -- devices that go and come -----------------------------------------------------------------------

    def device_gone(self, id: str, why: str = "", *, final: bool = False) -> None:
        """A device left, or its link died. ``final``: it will not be back."""
        hop = self.chain.find(id) if self.chain else None
        if hop is None or self.stage is Stage.IDLE:
            return
        if hop.link is None and self.stage is Stage.DEGRADED and not final:
            # The room's roster says again what the device itself said, and perhaps that it was for good.
            return
        hop.link, hop.ready = None, False
        if self.stage is Stage.STARTING:
            self.redeal("")
            return
        for other in self.chain.hops if self.chain else ():
            other.relinking = False
        lo, hi = hop.load.range
        self._degrade(why or f"{hop.name} left (layers {lo + 1}\u2013{hi}).", final=final)

    def lending_changed(self) -> None:
        """Deals again around a device that lends less than it holds; offers it where one lends more.

        Where this device itself pauses, the creator moves the model.
        """
        planned, crowd = self.planned, self._ports.crowd
        now = {member.name: member.meta for member in crowd.members}
        own = next((member.meta for member in crowd.members if member.id == crowd.me), None)
        if planned is None or self.stage is Stage.IDLE or (own is not None and not own.webgpu):
            return
        for member, held in dealt.shares(planned):
            meta = now.get(member.name)
            if meta is not None and (not meta.webgpu or pledge_gb(meta) * GIB < held):
                self.redeal(member.name)
                return
        before = {member.name: pledge_gb(member.meta) for member in planned.members}
        more = (name for name, meta in now.items() if meta.webgpu and pledge_gb(meta) > before.get(name, 0.0))
        grown = next(more, "")
        if grown:
            self._ports.crowd.happened(RedealOffered(f"{grown} lends more now."))

    def device_back(self, member: Member) -> bool:
        """Gives a returning device its old place; False when it has none."""
        hop = self.chain.named(member.name) if self.chain else None
        if hop is None or hop.here or self.stage is not Stage.DEGRADED or self.chain is None:
            return False
        if not member.meta.webgpu:
            self.redeal("")
            return False
        hop.id, hop.meta, hop.link = member.id, member.meta, self._ports.crowd.link(member.id)
        self._neighbours()
        self._ports.crowd.send(hop.id, hop.load)
        at = self.chain.hops.index(hop)
        if at > 0:
            self._relink(self.chain.hops[at - 1])
        if at + 1 < len(self.chain.hops):
            after = self.chain.hops[at + 1]
            self._ports.crowd.send(after.id, m.Next(next=after.load.next, prev=hop.id))
        return True

    def _relink(self, before: Hop) -> None:
        before.relinking = True
        self._relink_until = self._ports.clock.now() + RELINK_WAIT
        self._ports.crowd.send(before.id, m.Next(next=before.load.next, relink=True, prev=before.load.prev))

    def greet(self, member: Member) -> None:
        """What a newcomer must know of the model."""
        if self.planned is None or self.device_back(member):
            return
        crowd = self._ports.crowd
        self._came_late(member, self.planned)
        if self.stage is Stage.ONLINE:
            crowd.send(member.id, dealt.ready_all(self.planned))

    def _came_late(self, member: Member, planned: Plan) -> None:
        in_deal = any(known.name == member.name for known in planned.members)
        if member.meta.webgpu and not in_deal:
            self._late = (*self._late, member.name)
            self._ports.crowd.tell(dealt.layers(planned, self._late))
            self._ports.crowd.happened(RedealOffered(f"{member.name} could take layers too."))
        else:
            self._ports.crowd.send(member.id, dealt.layers(planned, self._late))

    # -- time -------------------------------------------------------------------------------------------

    def tick(self) -> None:
        now = self._ports.clock.now()
        if self.chain is not None:
            self.chain.laps.tick()
        if self.stage is Stage.STARTING and now - self._told_progress_at >= PROGRESS_PERIOD:
            self._told_progress_at = now
            self._ports.crowd.tell(m.HostProgress(all=self._progress(), at=now))
        if self.stage is Stage.DEGRADED:
            self._wait_or_deal(now)

    def _progress(self) -> dict[str, float]:
        if self.planned is None or self.chain is None:
            return {}
        own = self.planned.members[0].name
        shares = {own: self._own_progress, **{hop.name: hop.progress for hop in self.chain.hops}}
        return {name: float(int(share * 100)) for name, share in shares.items()}

    def _wait_or_deal(self, now: float) -> None:
        relinking = any(hop.relinking for hop in self.chain.hops) if self.chain else False
        too_late = relinking and now > self._relink_until
        given_up = self._ports.settings().auto_redeal and now - self._lost_at >= REJOIN_GRACE
        if too_late or given_up:
            self.redeal("")

    def learn_speed(self, own_ms: float) -> None:
        """After an answer: milliseconds a layer of every device, half old, half new."""
        if self.planned is None or self.chain is None:
            return
        record, own = self.planned.record, self.planned.members[0].name
        measured = {own: layer_ms(record, own_ms, self.planned.deal.assigned[0], head=self.chain.alone)}
        for hop in self.chain.hops:
            measured[hop.name] = layer_ms(record, hop.timings.one, hop.layers)
        known = self._layer_ms.setdefault(record.key, {})
        for name, ms in measured.items():
            if ms > 0:
                known[name] = (known.get(name, ms) + ms) / 2

    async def close(self) -> None:
        self._cancel()
        await self._tasks.close()
        with contextlib.suppress(PooledError):
            await self._ports.compute.unload()


async def _nothing() -> None: ...
