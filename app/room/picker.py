"""The rows of the model picker: what each model needs here, whether it fits, and if not, who could help."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from app.core.units import GIB
from app.models.table import ModelRecord, ModelTable
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
from app.room.memory import Need, kv_word, need
from app.room.meta import Meta
from app.room.offload import expert_sizes
from app.room.planner import Deal, Fit, Offer, SplitMode, deal, fit
from app.room.pledges import pledge_gb, ram_gb, spare_gb
from app.room.shortage import gb_up, shortage
from app.room.state import ModelRow


@dataclass(frozen=True)
class Plan:
    """One model dealt over the members, the model host first. ``deal`` holds nothing when it is short."""

    record: ModelRecord
    members: tuple[Member, ...]
    need: Need
    context: OpenContext
    fit: Fit
    deal: Deal
    kv: str = "f16"


@dataclass(frozen=True)
class Wish:
    """How a room wants its model: context in positions (0: its own), split, measured ms per layer by name."""

    context: int = 0
    split: SplitMode = SplitMode.SPEED
    ms_per_layer: tuple[tuple[str, float], ...] = ()
    kv: str = "f16"


def deal_order(members: Sequence[Member], model_host: str) -> tuple[Member, ...]:
    """The model host, then the other devices with a GPU by peer id; API clients never."""
    able = [member for member in members if not member.meta.is_api]
    first = [member for member in able if member.id == model_host]
    rest = [member for member in able if member.id != model_host and member.meta.webgpu]
    return (*first, *sorted(rest, key=lambda member: member.id))


def plan(record: ModelRecord, members: Sequence[Member], wish: Wish) -> Plan:
    """``members`` in deal order, at least one. The first context that fits wins."""
    kv = kv_word(record, wish.kv)
    metas = [member.meta for member in members]
    wanted = within_binding(record, wanted_context(record, wish.context), kv, smallest_binding(metas))
    offers = _offers(members, wish)
    experts = expert_sizes(record)

    def fitted(context: int) -> Fit:
        return fit(need(record, context, kv), offers, experts)

    choices = context_choices(record, wanted, wish.context)
    opened = open_context(choices, lambda context: fitted(context).fits)
    needed = need(record, opened.positions, kv)
    dealt = deal(needed, offers, wish.split, experts)
    return Plan(record, tuple(members), needed, opened, fitted(opened.positions), dealt, kv)


def _offers(members: Sequence[Member], wish: Wish) -> list[Offer]:
    measured = dict(wish.ms_per_layer)
    return [_offer(member.meta, measured.get(member.name)) for member in members]


def _offer(meta: Meta, ms: float | None) -> Offer:
    pledge = pledge_gb(meta) * GIB if meta.webgpu else 0.0
    return Offer(pledge, meta.is_phone, ram_gb(meta) * GIB, ms)


@dataclass(frozen=True)
class Screen:
    """Whose picker it is: own peer id, keys of models on this device's disk, the chosen model's context."""

    me: str
    on_disk: Collection[str] = ()
    chosen: str = ""
    context: int = 0


def model_rows(
    table: ModelTable, members: Sequence[Member], model_host: str, wish: Wish, screen: Screen
) -> tuple[ModelRow, ...]:
    """A row for every model offered; none while nobody can hold layers."""
    ordered = deal_order(members, model_host)
    if not any(member.meta.webgpu for member in ordered):
        return ()
    return tuple(_row(record, ordered, wish, screen) for record in table.offered())


def _row(record: ModelRecord, members: Sequence[Member], wish: Wish, screen: Screen) -> ModelRow:
    asked = screen.context if record.key == screen.chosen else 0
    planned = plan(record, members, replace(wish, context=asked))
    lack = _Lack.of(planned)
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
    )


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
