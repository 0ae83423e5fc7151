"""The chosen experts of step columns: every (column, slot) reads its own expert's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.engine.memory import Slice
from app.engine.ops.experts.combine import combine_dispatch
from app.engine.ops.experts.shape import ROUTED, ExpertShape, experts_of, one_slot
from app.engine.ops.matvec import Activations, Norm, Tuning
from app.engine.ops.matvec.source import Place, outputs_each, write_kernel
from app.engine.ops.render import unrolled
from app.engine.placement import Epilogue
from app.engine.program import Dispatch, Grid, Kernel, spread
from app.engine.weights.matrix import Block

_SHARED_BYTES = 16 << 10
_MOST_SUMS = 16
"""Sums a thread of the down kernel keeps, four floats each."""

_ONE_SLOT = Place(
    text=one_slot("origin"),
    binding="routes: array<Route>",
    declarations=ROUTED,
)

_MIXED = """
fn mixed(row: u32, team: u32, column: u32) -> f32 {
    var total = 0.0;
    for (var k = 0u; k < COLS; k++) {
        let value = sums[((row * COLS + k) * TEAMS + team) * LANES];
        total = fma(routes[column * SLOTS + k].weight, value, total);
    }
    return total;
}"""


def step_matvec(
    block: Block, rows_each: int, x: Activations, y: Activations, routes: Slice, shape: ExpertShape, columns: int,
    tuning: Tuning, *, epilogue: Epilogue = Epilogue.STORE, norm: Norm | None = None, per_slot: bool = False,
) -> Dispatch:  # fmt: skip
    """One block of a stack with ``rows_each`` rows an expert: y [columns * used, rows].

    ``x`` has a row a column, ``per_slot`` a row a column and slot. For SWIGLU an expert's gate rows come
    before its up rows, and y has half as many.
    """
    rows = rows_each // 2 if epilogue is Epilogue.SWIGLU else rows_each
    source = write_kernel(block.kind, 1, tuning, epilogue, _ONE_SLOT, norm=norm is not None)
    constants = _constants(block, rows_each, rows, x, y, shape)
    constants["SHARING"] = 1 if per_slot else shape.used
    if epilogue is Epilogue.SWIGLU:
        constants["SECOND"] = rows
    if norm:
        constants |= {"SIZE": float(norm.size), "EPS": norm.epsilon}
    slices = (x.slice, y.slice, *block.streams, *((norm.weights,) if norm else ()), routes)
    grid = spread(-(-rows // (tuning.teams * outputs_each(tuning, epilogue))))
    return _dispatch(source, slices, constants, (grid[0], grid[1], columns * shape.used), f"experts {block.kind.name}")


def step_down(
    blocks: Sequence[Block], inner: Activations, h: Activations, routes: Slice, shape: ExpertShape, columns: int,
    tuning: Tuning, outputs: Activations, *, apart: bool = False,
) -> list[Dispatch]:  # fmt: skip
    """Down rows of the stack, weighted, summed in slot order and added to ``h``: one launch.

    A stack in several blocks goes by way of ``outputs`` [columns * used, hidden], and so does one that is done
    ``apart``: a processor that imitates a GPU has too few registers for all slots. The bits are the same.
    """
    rows = sum(block.rows for block in blocks) // shape.count
    if len(blocks) == 1 and not apart:
        return [_mixed_down(blocks[0], rows, inner, h, routes, shape, columns, _room(tuning, shape.used))]
    launches = [
        step_matvec(block, rows, inner, outputs, routes, shape, columns, tuning, per_slot=True) for block in blocks
    ]
    return [*launches, combine_dispatch(outputs, h, routes, shape, rows, columns)]


def _mixed_down(
    block: Block, rows: int, inner: Activations, h: Activations, routes: Slice, shape: ExpertShape, columns: int,
    tuning: Tuning,
) -> Dispatch:  # fmt: skip
    used = shape.used
    origins = unrolled(used, lambda k: f"    let origin_{k} = routes[group.z * SLOTS + {k}u].expert * EXPERT_ROWS;")
    place = Place(
        text=f"    let column = group.z * COLS;\n    let out_column = group.z;\n{origins}",
        binding="routes: array<Route>",
        declarations=ROUTED + _MIXED,
        mixed=True,
    )
    source = write_kernel(block.kind, used, tuning, Epilogue.ADD, place)
    grid = spread(-(-rows // (tuning.teams * tuning.rows)))
    return _dispatch(
        source, (inner.slice, h.slice, *block.streams, routes), _constants(block, rows, rows, inner, h, shape),
        (grid[0], grid[1], columns), f"experts down {block.kind.name}",
    )  # fmt: skip


def _room(tuning: Tuning, used: int) -> Tuning:
    """The same order of summation with as many rows and teams as ``used`` sums a row leave room for."""
    rows = max(min(tuning.rows, _MOST_SUMS // used), 1)
    teams = tuning.teams
    while teams > 1 and tuning.lanes * teams * rows * used * 4 > _SHARED_BYTES:
        teams //= 2
    return replace(tuning, rows=rows, teams=teams)


def _constants(
    block: Block, rows_each: int, rows: int, x: Activations, y: Activations, shape: ExpertShape
) -> dict[str, int | float]:
    first, count = experts_of(block, rows_each)
    return {
        "ROWS": rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "X_STRIDE": x.stride // 4,
        "Y_STRIDE": y.stride, "Y_FIRST": y.first, "FIRST": first, "EXPERTS": count, "EXPERT_ROWS": rows_each,
        "USED": shape.used, "SLOTS": shape.slots,
    }  # fmt: skip


def _dispatch(
    source: str, slices: tuple[Slice, ...], constants: dict[str, int | float], grid: Grid, label: str
) -> Dispatch:
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    return Dispatch(Kernel(source, layout, tuple(constants.items()), label), slices, grid)
