"""How many threads share a row, and which placements a device can run."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.device import Caps
from app.engine.ops import quantise
from app.engine.ops.render import has_extra
from app.engine.placement import Epilogue, Job, Placement
from app.engine.weights.layout import UNIT

MOST_THREADS = 256
"""Threads of a workgroup that every device has room for."""
MOST_SUMS = 32
"""Sums a thread keeps; more of them would have each workgroup's registers."""
_MOST_AHEAD = 8


@dataclass(frozen=True)
class Order:
    """``lanes`` threads share a row, each taking every ``lanes``-th unit: that fixes the order of summation."""

    lanes: int


def order_for(rows: int, columns: int, caps: Caps) -> Order:
    """By the matrix alone, so that every width and every device of a kind sums alike."""
    if caps.software:
        return Order(8)
    return Order(64 if rows < 8192 and 4096 < columns <= 8192 else 32)


def order_of(job: Job, caps: Caps) -> Order:
    return order_for(job.rows, job.units * UNIT, caps)


def is_possible(placement: Placement, job: Job, caps: Caps) -> bool:
    """Whether a device can run a job so: also asked of placements that a file says are good."""
    lanes, sums = order_of(job, caps).lanes, placement.rows * placement.columns * sets_of(job.epilogue)
    parts = placement.teams, placement.rows, placement.columns, placement.ahead
    if min(parts) < 1 or lanes * placement.teams > MOST_THREADS or sums > MOST_SUMS or job.width % placement.columns:
        return False
    if placement.ahead > max(min(_MOST_AHEAD, job.units // lanes), 1):
        return False
    if shares_memory(lanes, caps) and 4 * lanes * placement.teams * sums > caps.shared:
        return False
    return not placement.fused or _can_fuse(placement, job, caps)


def _can_fuse(placement: Placement, job: Job, caps: Caps) -> bool:
    """A workgroup makes a whole unit, and has eight threads for each of its columns to round it."""
    rounds = job.rounded and job.epilogue is Epilogue.SWIGLU and has_extra(job.kind) and quantise.fuses(caps)
    whole = placement.teams * placement.rows == UNIT and job.rows % (2 * UNIT) == 0
    threads = order_of(job, caps).lanes * placement.teams
    return rounds and whole and not caps.software and threads >= 8 * placement.columns


def shares_memory(lanes: int, caps: Caps) -> bool:
    """Whether lanes are joined through workgroup memory, not by shuffles alone."""
    return lanes > shuffled(lanes, caps)


def shuffled(lanes: int, caps: Caps) -> int:
    """Lanes that are joined by shuffles; 1 where there are no subgroups."""
    return min(caps.subgroup, lanes) if caps.subgroup else 1


def sets_of(epilogue: Epilogue) -> int:
    """Rows of the matrix that an output takes."""
    return 2 if epilogue is Epilogue.SWIGLU else 1
