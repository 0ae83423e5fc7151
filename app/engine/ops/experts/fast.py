"""The chosen experts in the fast arithmetic: of step columns one by one, of prompt columns in tiles."""

from __future__ import annotations

from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.ops import fast_matmul
from app.engine.ops.experts.prompt import (
    SMALLEST_TILE,
    TILE_BINDINGS,
    TILE_DECLARATIONS,
    TILE_PLACE,
    Groups,
    tile_count,
)
from app.engine.ops.experts.shape import ROUTED, ExpertShape, experts_of, one_slot
from app.engine.ops.fast_matvec.order import Order
from app.engine.ops.fast_matvec.source import Place, write_kernel
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised
from app.engine.ops.render import unrolled
from app.engine.placement import Epilogue, Placement
from app.engine.program import Dispatch, Kernel, spread
from app.engine.weights.matrix import Block

_ONE_SLOT = Place(
    text=one_slot("origin_0"),
    binding="routes: array<Route>",
    declarations=ROUTED,
)


def fast_step_matvec(
    block: Block, rows_each: int, x: Quantised, y: Activations, routes: Slice, shape: ExpertShape, columns: int,
    caps: Caps, *, epilogue: Epilogue = Epilogue.STORE,
) -> Dispatch:  # fmt: skip
    """``step_matvec`` over int8 columns."""
    rows = rows_each // 2 if epilogue is Epilogue.SWIGLU else rows_each
    order, placement = _order(caps), _placement(caps, 1)
    source = write_kernel(block.kind, order, placement, epilogue, caps, _ONE_SLOT)
    grid = spread(-(-rows // (placement.teams * placement.rows)))
    return _dispatch(
        block, source, x, y, routes, _constants(block, rows_each, rows, y, shape, shape.used),
        (grid[0], grid[1], columns * shape.used), "fast experts",
    )  # fmt: skip


def fast_step_down(
    block: Block, inner: Quantised, h: Activations, routes: Slice, shape: ExpertShape, columns: int, caps: Caps
) -> Dispatch:
    """``step_down`` of a stack in one block: weighted, summed in slot order and added to ``h``."""
    rows, used, placement = block.rows // shape.count, shape.used, _placement(caps, shape.used)
    lines = unrolled(used, lambda k: f"    let route_{k} = routes[group.z * SLOTS + {k}u];")
    lines += "\n" + unrolled(used, lambda k: f"    let origin_{k} = route_{k}.expert * EXPERT_ROWS;")
    lines += "\n" + unrolled(used, lambda k: f"    let mix_{k} = route_{k}.weight;")
    place = Place(
        text=f"    let column = group.z * COLS;\n    let out_column = group.z;\n{lines}",
        binding="routes: array<Route>", declarations=ROUTED, apart=True, mixed=True,
    )  # fmt: skip
    source = write_kernel(block.kind, _order(caps), placement, Epilogue.ADD, caps, place)
    grid = spread(-(-rows // (placement.teams * placement.rows)))
    return _dispatch(
        block, source, inner, h, routes, _constants(block, rows, rows, h, shape, 1), (grid[0], grid[1], columns),
        "fast experts down",
    )  # fmt: skip


def fast_grouped_matmul(
    block: Block, rows_each: int, x: Quantised, y: Activations, groups: Groups, shape: ExpertShape, columns: int,
    caps: Caps, *, per_slot: bool = False,
) -> Dispatch:  # fmt: skip
    """``grouped_matmul`` over int8 columns; the sort's tiles are of ``fast_tile``."""
    tile = fast_tile(shape, columns, caps)
    constants = _constants(block, rows_each, rows_each, y, shape, 1 if per_slot else shape.used)
    del constants["EXPERT_ROWS"], constants["USED"], constants["SLOTS"]
    constants["PAIRS"] = columns * shape.used
    source = fast_matmul.write_kernel(block.kind, tile, Epilogue.STORE, caps, _GROUPED)
    slices = (x.values, y.slice, x.scales, *block.streams, groups.pairs, groups.tiles)
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    kernel = Kernel(source, layout, tuple(constants.items()), f"fast experts matmul {block.kind.name}")
    grid = (-(-rows_each // fast_matmul.rows_of(caps)), tile_count(shape, columns, tile), 1)
    return Dispatch(kernel, slices, grid)


def fast_tile(shape: ExpertShape, columns: int, caps: Caps) -> int:
    """Pairs of a tile: about as many as an expert has."""
    if caps.software:
        return SMALLEST_TILE
    average = columns * shape.used / shape.count
    return next((tile for tile in (64, 32) if average >= 0.75 * tile), 16)


_GROUPED = fast_matmul.Place(text=TILE_PLACE, bindings=TILE_BINDINGS, declarations=TILE_DECLARATIONS)


def _order(caps: Caps) -> Order:
    return Order(8) if caps.software else Order(16)


def _placement(caps: Caps, columns: int) -> Placement:
    return Placement(4 if caps.software else 8, 1, columns)


def _constants(
    block: Block, rows_each: int, rows: int, y: Activations, shape: ExpertShape, sharing: int
) -> dict[str, int | float]:
    first, count = experts_of(block, rows_each)
    return {
        "ROWS": rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "Y_STRIDE": y.stride,
        "Y_FIRST": y.first, "FIRST": first, "EXPERTS": count, "EXPERT_ROWS": rows_each, "USED": shape.used,
        "SLOTS": shape.slots, "SHARING": sharing,
    }  # fmt: skip


def _dispatch(
    block: Block, source: str, x: Quantised, y: Activations, routes: Slice, constants: dict[str, int | float],
    grid: tuple[int, int, int], label: str,
) -> Dispatch:  # fmt: skip
    slices = (x.values, y.slice, x.scales, *block.streams, routes)
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    return Dispatch(Kernel(source, layout, tuple(constants.items()), f"{label} {block.kind.name}"), slices, grid)
