"""The rows of the model picker: what each model needs here, whether it fits, and if not, who could help."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.core.units import GIB
from app.models.table import ModelRecord, Models
from app.room.contexts import (
    OpenContext,
    context_choices,
    offered_contexts,
    open_context,
    smallest_binding,
    wanted_context,
    within_binding,
)
from app.room.events import Member
from app.room.fastest import Choice, Options, choose
from app.room.memory import Need, kv_word, need, resident_bytes
from app.room.meta import Meta
from app.room.offload import expert_sizes
from app.room.planner import Deal, Fit, Offer, SplitMode, fit
from app.room.pledges import pledge_gb, ram_gb, spare_gb
from app.room.predict import Forecast, Known, layer_ms, rate
from app.room.shortage import gb_up, shortage
from app.room.state import ModelRow, RoomState, Tried


@dataclass(frozen=True)
class Plan:
    """One model dealt over the members, the model host first. ``deal`` holds nothing when it is short.

    ``draft`` is the small model that the model host loads beside its share, "" for none; ``need`` counts it.
    """

    record: ModelRecord
    members: tuple[Member, ...]
    need: Need
    context: OpenContext
    fit: Fit
    choice: Choice
    kv: str = "f16"
    draft: str = ""

    @property
    def deal(self) -> Deal:
        return self.choice.deal


@dataclass(frozen=True)
class Wish:
    """How a room wants its model, context in positions (0: its own), and what is known of the room's speed.

    ``draft`` is a small model that lies on the model host and could guess for the wanted one, ``kept`` how many saved
    states there should be room for.
    """

    context: int = 0
    split: SplitMode = SplitMode.SPEED
    kv: str = "f16"
    known: Known = field(default_factory=Known)
    draft: ModelRecord | None = None
    kept: int = 0


def deal_order(members: Sequence[Member], model_host: str) -> tuple[Member, ...]:
    """The model host, then the other devices with a GPU by peer id; API clients never."""
    able = [member for member in members if not member.meta.is_api]
    first = [member for member in able if member.id == model_host]
    rest = [member for member in able if member.id != model_host and member.meta.webgpu]
    return (*first, *sorted(rest, key=lambda member: member.id))


def plan(record: ModelRecord, members: Sequence[Member], wish: Wish) -> Plan:
    """``members`` in deal order, at least one. The first context that fits wins.

    A row of the model host's own is known to no other device, so that one holds all of it.
    """
    members = members[:1] if record.own else members
    kv = kv_word(record, wish.kv)
    metas = [member.meta for member in members]
    wanted = within_binding(record, wanted_context(record, wish.context), kv, smallest_binding(metas))
    offers = _offers(members, wish.known.of(record.key))
    experts = expert_sizes(record)

    def fitted(context: int) -> Fit:
        return fit(need(record, context, kv), offers, experts)

    choices = context_choices(record, wanted, wish.context)
    opened = open_context(choices, lambda context: fitted(context).fits)
    needed = need(record, opened.positions, kv)
    options, forecast = Options(needed, offers, experts), Forecast(record, members, wish.known)
    choice = choose(options, wish.split, forecast)
    planned = Plan(record, tuple(members), needed, opened, fitted(opened.positions), choice, kv)
    return _with_extras(planned, wish, options, forecast)


def _with_extras(planned: Plan, wish: Wish, options: Options, forecast: Forecast) -> Plan:
    """The same with a draft model and saved states, where all fits on the very devices it does without."""
    record, context, small = planned.record, planned.context.positions, wish.draft
    needed = need(record, context, planned.kv, kept=wish.kept)
    beside = resident_bytes(small, context) if small is not None else 0
    needed = replace(needed, host_bytes=needed.host_bytes + beside)
    if not planned.deal.fits or any(planned.deal.parkings) or needed == planned.need:
        return planned
    choice = choose(replace(options, need=needed), wish.split, forecast)
    if choice.deal.used != planned.deal.used or any(choice.deal.parkings):
        return planned
    return replace(planned, need=needed, choice=choice, draft=small.key if small is not None else "")


def _offers(members: Sequence[Member], measured: Mapping[str, float]) -> list[Offer]:
    return [_offer(member.meta, measured.get(member.name)) for member in members]


def _offer(meta: Meta, ms: float | None) -> Offer:
    pledge = pledge_gb(meta) * GIB if meta.webgpu else 0.0
    return Offer(pledge, meta.is_phone, ram_gb(meta) * GIB, ms)


@dataclass(frozen=True)
class Screen:
    """Whose picker it is: own peer id, keys of models on this device's disk, the chosen model's context, and how
    fast models ran here."""

    me: str
    on_disk: Collection[str] = ()
    chosen: str = ""
    context: int = 0
    tried: Sequence[Tried] = ()


def seen(state: RoomState, table: Models) -> Known:
    """What a screen knows of its room's speed."""
    trips = {device.id: device.rtt_ms / 1000 for device in state.devices if device.rtt_ms is not None}
    records = [(tried, table.find(tried.model)) for tried in state.tried]
    return Known(state.me, trips, {tried.model: _layer_ms(tried, record) for tried, record in records if record})


def _layer_ms(tried: Tried, record: ModelRecord) -> dict[str, float]:
    alone = len(tried.shares) == 1
    return {name: layer_ms(record, ms, layers, head=alone) for name, layers, ms in tried.shares if ms > 0}


def model_rows(
    table: Models, members: Sequence[Member], model_host: str, wish: Wish, screen: Screen
) -> tuple[ModelRow, ...]:
    """A row for every model offered; none while nobody can hold layers.

    Rows of this device's own only where it would run the model itself: no other device knows them.
    """
    ordered = deal_order(members, model_host)
    if not any(member.meta.webgpu for member in ordered):
        return ()
    offered = (record for record in table.offered() if not record.own or model_host == screen.me)
    return tuple(_row(record, ordered, wish, screen) for record in offered)


def _row(record: ModelRecord, members: Sequence[Member], wish: Wish, screen: Screen) -> ModelRow:
    asked = screen.context if record.key == screen.chosen else 0
    planned = plan(record, members, replace(wish, context=asked))
    lack, ran = _Lack.of(planned), _ran(planned, screen)
    return ModelRow(
        key=record.key,
        label=record.label,
        need_gb=_tenth(planned.need.total + planned.need.reserve),
        have_gb=sum(pledge_gb(member.meta) for member in members if member.meta.webgpu),
        fits=planned.deal.fits,
        sentence=_fits_on(planned) if planned.deal.fits else f"{lack.gb:g} GB more needed",
        short_gb=lack.gb,
        helpers=lack.helpers,
        own_raise_gb=lack.own_raise(planned, screen.me),
        context=planned.context.positions,
        contexts=offered_contexts(record),
        download_bytes=_download(planned, screen.me),
        on_disk=record.key in screen.on_disk,
        starter=record.starter,
        predicted=planned.choice.predicted,
        speed=f"{ran:.1f} tok/s in the last answer" if ran else _expected(planned),
    )


def _ran(planned: Plan, screen: Screen) -> float:
    """Words a second of the last answer by just these devices; 0 when there was none."""
    names = {planned.members[i].name for i in planned.deal.used}
    ran = (each for each in screen.tried if each.model == planned.record.key and names == each.names)
    return next((each.tokens_per_second for each in ran), 0.0)


def _expected(planned: Plan) -> str:
    """ "about 12 tok/s on 2 devices; 3 would be slower"."""
    choice, count = planned.choice, len(planned.deal.used)
    if choice.predicted is None:
        return ""
    where = f"{count} devices" if count > 1 else f"{planned.members[0].name} alone"
    slower = f"; {choice.slower} devices would be slower" if count == 1 else f"; {choice.slower} would be slower"
    return f"about {rate(choice.predicted)} on {where}{slower if choice.slower else ''}"


def _tenth(size: float) -> float:
    return round(size / GIB, 1)


def _fits_on(planned: Plan) -> str:
    names = [planned.members[i].name for i in planned.deal.used]
    return f"fits on {names[0]} alone" if len(names) == 1 else f"fits, {len(names)} devices"


def _download(planned: Plan, me: str) -> int:
    """This device's share of the weight file; the whole file before anything fits."""
    record = planned.record
    shares = {planned.members[i].id: n for i, n in zip(planned.deal.used, planned.deal.assigned, strict=True)}
    if not planned.deal.fits or shares.get(me) == record.layers:
        return record.download_bytes
    once = record.embed_bytes + record.output_bytes if me == planned.members[0].id else 0
    return shares.get(me, 0) * record.layer_bytes + once


@dataclass(frozen=True)
class _Lack:
    gb: float = 0.0
    helpers: tuple[str, ...] = ()

    @classmethod
    def of(cls, planned: Plan) -> _Lack:
        if planned.deal.fits:
            return cls()
        spare = [spare_gb(member.meta) for member in planned.members]
        short = shortage(planned.fit.raises, planned.fit.short, spare)
        return cls(short.gb, tuple(planned.members[i].name for i in short.helpers))

    def own_raise(self, planned: Plan, me: str) -> float | None:
        """What this device would lend in all to close the gap alone, in whole GB."""
        mine = next((i for i, member in enumerate(planned.members) if member.id == me), None)
        if planned.deal.fits or mine is None:
            return None
        member = planned.members[mine]
        extra = planned.fit.raises[mine]
        if extra > spare_gb(member.meta) * GIB:
            return None
        return float(-(-(pledge_gb(member.meta) + gb_up(extra)) // 1))
