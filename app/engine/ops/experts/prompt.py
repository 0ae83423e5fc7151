"""The experts of prompt columns: pairs of a column and a slot are grouped by expert, then multiplied in tiles."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.memory import Slice
from app.engine.ops.experts.shape import ROUTE_STRUCT, ExpertShape, experts_of
from app.engine.ops.matmul.placement import WIDE_SHARED_BYTES, Placement
from app.engine.ops.matmul.source import Columns, write_kernel
from app.engine.ops.matvec import Activations
from app.engine.ops.render import template
from app.engine.placement import Epilogue
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block

TILE_BYTES = 16
SMALLEST_TILE = min(placement.columns for placement in Placement)
_FEW_PAIRS = 48
"""Below as many pairs an expert, on average, a wide tile would be mostly empty."""
_THREADS = 128

TILE_STRUCT = """
struct Tile {
    expert: u32,
    first: u32,
    count: u32,
    spare: u32,
}
"""

# What a kernel over tiles of pairs declares, in either arithmetic.
TILE_BINDINGS = ("pairs: array<u32>", "tiles: array<Tile>")
TILE_DECLARATIONS = f"""{TILE_STRUCT}
override FIRST: u32;
override EXPERTS: u32;
override PAIRS: u32;
override SHARING: u32;

// Columns past the tile's end are read but never written.
fn x_row(col: u32) -> u32 {{ return pairs[min(col, PAIRS - 1u)] / SHARING; }}
fn y_row(col: u32) -> u32 {{ return pairs[col]; }}"""
TILE_PLACE = """    let tile = tiles[group.y];
    if (tile.count == 0u || tile.expert < FIRST || tile.expert >= FIRST + EXPERTS) { return; }
    let first_col = tile.first;
    let end_col = tile.first + tile.count;
    let origin = (tile.expert - FIRST) * ROWS;"""

_GROUPED = Columns(bindings=TILE_BINDINGS, declarations=TILE_DECLARATIONS, place=TILE_PLACE, inside="col < end_col")


@dataclass(frozen=True)
class Groups:
    """``pairs`` (column * used + slot) ordered by expert, and ``tiles`` of at most a placement's columns of them."""

    pairs: Slice
    tiles: Slice


def placement_for(shape: ExpertShape, columns: int, shared: int, *, software: bool) -> Placement:
    """``shared`` bytes of workgroup memory are there."""
    if software:
        return Placement.ROWWISE
    many = columns * shape.used >= _FEW_PAIRS * shape.count
    return Placement.WIDE if many and shared >= WIDE_SHARED_BYTES else Placement.MEDIUM


def tile_count(shape: ExpertShape, columns: int, tile: int) -> int:
    """Tiles of ``tile`` pairs there is room for: enough however the pairs are spread over the experts."""
    return columns * shape.used // tile + shape.count


def sort_dispatch(routes: Slice, groups: Groups, shape: ExpertShape, columns: int, tile: int) -> Dispatch:
    """Groups the pairs of all columns in tiles of at most ``tile``; the shared expert's are left out."""
    source = template("experts/sort.wgsl").substitute(threads=_THREADS, route=ROUTE_STRUCT, tile=TILE_STRUCT)
    constants = (
        ("PAIRS", columns * shape.used), ("USED", shape.used), ("SLOTS", shape.slots), ("TILE", tile),
    )  # fmt: skip
    kernel = Kernel(source, ("read", "write", "write"), constants, "experts sort")
    return Dispatch(kernel, (routes, groups.pairs, groups.tiles), (shape.count, 1, 1))


def grouped_matmul(
    block: Block, rows_each: int, x: Activations, y: Activations, groups: Groups, shape: ExpertShape, columns: int,
    placement: Placement, *, per_slot: bool = False,
) -> Dispatch:  # fmt: skip
    """One block of a stack with ``rows_each`` rows an expert: y [columns * used, rows_each].

    ``x`` has a row a column, ``per_slot`` a row a column and slot. ``placement`` has the width of the sort.
    """
    first, count = experts_of(block, rows_each)
    constants: dict[str, int | float] = {
        "ROWS": rows_each, "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "X_STRIDE": x.stride // 4,
        "Y_STRIDE": y.stride, "Y_FIRST": y.first, "FIRST": first, "EXPERTS": count, "PAIRS": columns * shape.used,
        "SHARING": 1 if per_slot else shape.used,
    }  # fmt: skip
    slices = (x.slice, y.slice, *block.streams, groups.pairs, groups.tiles)
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    source = write_kernel(block.kind, placement, Epilogue.STORE, _GROUPED)
    kernel = Kernel(source, layout, tuple(constants.items()), f"experts matmul {block.kind.name}")
    grid = (-(-rows_each // placement.rows), tile_count(shape, columns, placement.columns), 1)
    return Dispatch(kernel, slices, grid)
