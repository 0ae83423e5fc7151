"""Which placements of a job are measured, and which of them is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from app.engine.device import Caps
from app.engine.ops.fast_matvec import is_possible, order_of, usual_placement
from app.engine.ops.fast_matvec.order import MOST_THREADS
from app.engine.placement import Job, Placement
from app.engine.weights.layout import UNIT

GAIN = 1.02
"""How many times as long the usual placement must take for another to replace it."""

_STEPS: tuple[Callable[[Placement], Placement], ...] = (
    lambda p: replace(p, rows=2 * p.rows),
    lambda p: replace(p, rows=p.rows // 2),
    lambda p: replace(p, ahead=2 * p.ahead),
    lambda p: replace(p, ahead=p.ahead // 2),
    lambda p: replace(p, teams=2 * p.teams),
    lambda p: replace(p, teams=p.teams // 2),
    lambda p: replace(p, teams=2 * p.teams, rows=p.rows // 2),
    lambda p: replace(p, teams=p.teams // 2, rows=2 * p.rows),
    lambda p: replace(p, columns=p.columns // 2),
    lambda p: replace(p, columns=2 * p.columns, rows=p.rows // 2),
)
"""Twice the teams with half the rows keeps a workgroup's rows, as rounding demands."""


def candidates(job: Job, caps: Caps) -> list[Placement]:
    """The usual placement, its neighbours, and what rounds the other way: all that a device can run."""
    usual = usual_placement(job, caps)
    others = [step(usual) for step in _STEPS]
    others += _rounding_apart(job, caps) if usual.fused else _rounding_fused(job, caps)
    return [usual, *(p for p in dict.fromkeys(others) if is_possible(p, job, caps))]


def quickest(times: Mapping[Placement, float]) -> Placement:
    """The one that takes least time; the first unless it takes ``GAIN`` times as long."""
    first, best = next(iter(times)), min(times, key=times.__getitem__)
    return best if times[first] > GAIN * times[best] else first


def _rounding_apart(job: Job, caps: Caps) -> Iterator[Placement]:
    """What would be usual if the result were not wanted as int8."""
    yield usual_placement(replace(job, rounded=False), caps)


def _rounding_fused(job: Job, caps: Caps) -> Iterator[Placement]:
    teams = max(MOST_THREADS // order_of(job, caps).lanes, 1)
    fused = (Placement(teams, UNIT // teams, columns, fused=True) for columns in (4, 2, 1))
    yield from [p for p in fused if is_possible(p, job, caps)][:1]
