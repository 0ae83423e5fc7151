"""What a plan says to each device of the room, as values (spec: rooms §13)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.core.units import GIB
from app.engine.types import KvFormat, Part
from app.room import messages as m
from app.room.events import Member
from app.room.memory import kv_format
from app.room.picker import Plan
from app.room.planner import LeftOut
from app.room.pledges import pledge_gb, spare_gb
from app.room.ports import LoadRequest
from app.room.precision import Precision
from app.room.shortage import shortage


def own_request(planned: Plan) -> LoadRequest:
    """The model host's own share: its layers with the embedding, the head and the draft block, if there is one."""
    record, (lo, hi) = planned.record, planned.deal.ranges[0]
    pledge = int(pledge_gb(planned.members[0].meta) * GIB)
    part = Part(lo, hi, embed=True, head=True, draft=record.draft_bytes > 0)
    kv = kv_format(record, planned.kv) or KvFormat.F16
    return LoadRequest(record.key, part, planned.context.positions, kv, pledge, draft=planned.draft)


def loads(planned: Plan, precision: Precision = Precision.HALF) -> list[tuple[Member, m.Load]]:
    """The members after the model host and what each is told to load; neighbours come later.

    Whole floats travel only where every one of them can take them.
    """
    pairs = list(zip(planned.deal.used, planned.deal.ranges, strict=True))[1:]
    all_can = all(planned.members[i].meta.full for i, _ in pairs)
    hidden = precision.value if all_can else Precision.HALF.value
    key, positions = planned.record.key, planned.context.positions
    return [(planned.members[i], m.Load(key, bounds, positions, planned.kv, hidden=hidden)) for i, bounds in pairs]


@dataclass(frozen=True)
class Dealt:
    """What one device was given: layers, GB of one, and the GB it lent."""

    layers: int
    layer_gb: float
    pledge_gb: float


def by_name(planned: Plan) -> dict[str, Dealt]:
    layer_gb = planned.need.layer_bytes / GIB
    pairs = zip(planned.deal.used, planned.deal.assigned, strict=True)
    members = [(planned.members[i], layers) for i, layers in pairs]
    return {member.name: Dealt(layers, layer_gb, pledge_gb(member.meta)) for member, layers in members}


def shares(planned: Plan) -> list[tuple[Member, int]]:
    """The devices that hold layers, and how many bytes each holds."""
    return [(planned.members[i], held) for i, held in zip(planned.deal.used, planned.deal.held, strict=True)]


def layers(planned: Plan, late: Iterable[str] = ()) -> m.Layers:
    """Who holds which layers and how many GB, and why others hold none. ``late``: names of those who came after."""
    names = [member.name for member in planned.members]
    rows = list(zip(planned.deal.used, planned.deal.ranges, planned.deal.held, strict=True))
    out = {names[i]: reason.value for i, reason in planned.deal.out.items()}
    return m.Layers(
        by={names[i]: m.layer_words(*bounds) for i, bounds, _ in rows},
        held={names[i]: round(held / GIB, 2) for i, _, held in rows},
        out={**out, **dict.fromkeys(late, LeftOut.LATE.value)},
        tps=round(planned.choice.predicted or 0.0, 2),
    )


def ready_all(planned: Plan) -> m.ReadyAll:
    """The model runs; ``ctxWant`` says what was asked for when the context had to fall back."""
    context = planned.context
    return m.ReadyAll(
        model=planned.record.key,
        label=planned.record.label,
        ctx=context.positions,
        ctxWant=context.wanted if context.fell_back else 0,
    )


def too_small(planned: Plan) -> str:
    """How much the room lacks, and who could lend it."""
    spare = [spare_gb(member.meta) for member in planned.members]
    lack = shortage(planned.fit.raises, planned.fit.short, spare)
    names = " or ".join(planned.members[i].name for i in lack.helpers)
    helped = f" {names} could lend it." if names else ""
    return f"The room is {lack.gb:g} GB short for {planned.record.label}.{helped}"
