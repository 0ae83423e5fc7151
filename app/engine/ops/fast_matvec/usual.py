"""Where a product is made unless something better was measured: what was quickest on an H200 (docs/benchmarks.md)."""

from __future__ import annotations

from collections.abc import Iterator

from app.engine.device import Caps
from app.engine.ops.fast_matvec.order import MOST_SUMS, is_possible, order_of, sets_of
from app.engine.placement import Job, Placement
from app.engine.weights.ints import has_two_scales

_MANY_ROWS, _SOME_ROWS = 8192, 4096
_LONG, _SHORT = 16, 2
"""Units of a row that a lane has."""
_MOST_COLUMNS = 8
_FEW_SUMS, _SUMS = 8, 16
"""Sums that a thread keeps: with two scales a unit and rows doubled, and else for one column."""


def placement_of(job: Job, caps: Caps) -> Placement:
    """What was measured for a job on this device, else what is usual."""
    return caps.placements.get(job) or usual_placement(job, caps)


def usual_placement(job: Job, caps: Caps) -> Placement:
    """The first of what is wanted that the device can run."""
    teams, rows = _one_column_shape(job, caps)
    plain = _placement(job, teams, rows, _SUMS)
    if caps.software:
        return plain
    return next((placement for placement in _wanted(job, caps) if is_possible(placement, job, caps)), plain)


def _wanted(job: Job, caps: Caps) -> Iterator[Placement]:
    """Gated values rounded where they are made; else more rows a team, since all of them share its inputs."""
    lanes, heavy = order_of(job, caps).lanes, has_two_scales(job.kind)
    if lanes == 32 and not (heavy and job.width > 2):
        yield Placement(8, 4, largest_part(job.width, 4), _ahead(job, lanes, 2 if job.width == 2 else 1), fused=True)
    if job.width > 1:
        yield _heavy(job, caps) if heavy else _several_columns(job, lanes)


def _one_column_shape(job: Job, caps: Caps) -> tuple[int, int]:
    """Teams of a workgroup and rows of a team."""
    if caps.software:
        return 4, 4
    if job.rows >= _MANY_ROWS:
        return 4, 2
    if order_of(job, caps).lanes == 64:
        return (2, 2) if job.rows >= _SOME_ROWS else (1, 1)
    return 4, 1


def _heavy(job: Job, caps: Caps) -> Placement:
    """Two scales a unit take registers: rows are doubled for few sums only."""
    teams, rows = _one_column_shape(job, caps)
    doubled = _placement(job, teams, 2 * rows, _FEW_SUMS)
    return doubled if doubled.columns == min(job.width, _MOST_COLUMNS) else _placement(job, teams, rows, _SUMS)


def _several_columns(job: Job, lanes: int) -> Placement:
    teams, rows, ahead = _several_columns_shape(job, lanes)
    return _placement(job, teams, max(rows // sets_of(job.epilogue), 1), MOST_SUMS, _ahead(job, lanes, ahead))


def _several_columns_shape(job: Job, lanes: int) -> tuple[int, int, int]:
    """Teams of a workgroup, rows of the matrix a team, units ahead."""
    two, units = job.width == 2, job.units // lanes
    if job.rows >= _MANY_ROWS:
        return (2, 4, 4) if two else (8, 8, 1)
    if lanes == 64:
        return (2, 4, 2) if job.rows >= _SOME_ROWS else (2, 2, 2)
    if units >= _LONG:
        return (4, 2, 8) if two else (4, 4, 2)
    if units > _SHORT:
        return 4, 2, 2
    return (4, 1, 1) if two else (4, 2, 1)


def _placement(job: Job, teams: int, rows: int, sums: int, ahead: int = 1) -> Placement:
    """As many columns as a thread has sums for."""
    most = max(sums // (rows * sets_of(job.epilogue)), 1)
    return Placement(teams, rows, largest_part(job.width, min(most, _MOST_COLUMNS)), ahead)


def _ahead(job: Job, lanes: int, most: int) -> int:
    """Up to ``most``, and no more than a lane has; short rows are read by waiting threads in any case."""
    units = job.units // lanes
    return min(most, 1 << units.bit_length() - 1) if units > _SHORT else 1


def largest_part(width: int, most: int) -> int:
    """The largest number of columns up to ``most`` that divides ``width``."""
    return next(count for count in range(min(width, most), 0, -1) if width % count == 0)
