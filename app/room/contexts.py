"""Which context length a room opens with (spec: rooms §11.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.models.table import ModelRecord
from app.room.memory import kv_buffer_position
from app.room.meta import Meta

STEP = 256
SHORTEST = 2048
DEFAULT_HYBRID = 8192
DEFAULT_BINDING_MB = 128
MIB = 2**20


@dataclass(frozen=True)
class OpenContext:
    """The length a room opens with; ``fell_back`` when it is shorter than wanted."""

    positions: int
    wanted: int
    fits: bool
    fell_back: bool


def wanted_context(record: ModelRecord | None, asked: float = 0) -> int:
    """``asked`` 0 or less: no explicit wish. A model without context entries ignores the wish."""
    if record is None or record.contexts is None:
        return DEFAULT_HYBRID if record is not None and record.hybrid else SHORTEST
    if asked <= 0:
        return record.contexts.default
    rounded = math.floor(asked / STEP + 0.5) * STEP
    return min(max(rounded, SHORTEST), record.contexts.maximum)


def context_choices(record: ModelRecord | None, wanted: int, asked: float = 0) -> tuple[int, ...]:
    """Lengths to try, best first."""
    fallback = record.contexts.fallback if record is not None and record.contexts else 0
    return (wanted, fallback) if asked <= 0 and 0 < fallback < wanted else (wanted,)


def smallest_binding(metas: Iterable[Meta]) -> int:
    """Bytes of the largest buffer that every device can bind whole."""
    return min((meta.max_bind_mb or DEFAULT_BINDING_MB) * MIB for meta in metas)


def within_binding(record: ModelRecord, context: int, kv: str, binding: int) -> int:
    """The context cut so that one KV buffer of a hybrid fits ``binding`` bytes."""
    if not record.hybrid:
        return context
    room = max(binding, DEFAULT_BINDING_MB * MIB)
    longest = room // kv_buffer_position(record, kv) // STEP * STEP
    return min(context, longest)


def open_context(choices: tuple[int, ...], fits: Callable[[int], bool]) -> OpenContext:
    """The first choice that fits, or the last with ``fits`` False."""
    wanted = choices[0]
    for positions in choices:
        if fits(positions):
            return OpenContext(positions, wanted, fits=True, fell_back=positions < wanted)
    return OpenContext(choices[-1], wanted, fits=False, fell_back=False)


def offered_contexts(record: ModelRecord) -> tuple[int, ...]:
    """The lengths a person can choose, shortest first."""
    if record.contexts is None:
        return (wanted_context(record),)
    doublings = [SHORTEST << n for n in range(2, 10)]
    steps = {length for length in doublings if length <= record.contexts.maximum}
    return tuple(sorted(steps | {record.contexts.default, record.contexts.maximum}))
