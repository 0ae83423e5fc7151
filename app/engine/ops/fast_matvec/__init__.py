"""Matrix times step columns in the fast arithmetic: int8 activations, packed dot products (ADR 8)."""

from __future__ import annotations

from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.ops import quantise
from app.engine.ops.fast_matvec.order import Order, order_for
from app.engine.ops.fast_matvec.source import WHOLE, write_kernel
from app.engine.ops.matvec import Activations, Epilogue
from app.engine.ops.quantise import Quantised
from app.engine.ops.render import has_extra
from app.engine.program import Dispatch, Kernel, spread
from app.engine.weights.layout import UNIT
from app.engine.weights.matrix import Block

__all__ = ["Order", "dispatch", "order_for", "rounded_dispatch", "rounds", "takes"]

_MOST_SUMS = 16
_MOST_COLUMNS = 8


def takes(block: Block) -> bool:
    """Whether a format has whole numbers to multiply."""
    return has_extra(block.kind)


def dispatch(
    block: Block, x: Quantised, y: Activations, columns: int, caps: Caps, *,
    epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None, weights: Activations | None = None,
    order: Order | None = None,
) -> Dispatch:  # fmt: skip
    """One block of a matrix over quantised columns. For SWIGLU the block holds all gate rows, then all up rows."""
    sets = 2 if epilogue is Epilogue.SWIGLU else 1
    rows = block.rows // sets
    order = order or order_for(block.rows, block.columns, caps)
    cols = min(columns, _MOST_COLUMNS, max(_MOST_SUMS // (order.rows * sets), 1))
    source = write_kernel(block.kind, cols, order, epilogue, caps, WHOLE, bias=bias is not None)
    constants: dict[str, int | float] = {
        "ROWS": rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "Y_STRIDE": y.stride,
        "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    if weights:
        constants |= {"WEIGHT_STRIDE": weights.stride, "WEIGHT_FIRST": weights.first}
    extra = bias or (weights.slice if weights else None)
    slices = (x.values, y.slice, x.scales, *block.streams, *((extra,) if extra else ()))
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    kernel = Kernel(source, layout, tuple(constants.items()), f"fast matvec {block.kind.name}")
    x_groups, y_groups, _ = spread(-(-rows // (order.teams * order.rows)))
    return Dispatch(kernel, slices, (x_groups, y_groups, -(-columns // cols)))


_ROUNDED = Order(32, 8, 4)
"""A unit of rows a workgroup: four a team."""
_MOST_ROUNDED = 2
"""Columns up to which it pays: more of them would have each workgroup's registers."""


def rounds(block: Block, columns: int, caps: Caps) -> bool:
    """Whether gate and up rows can be joined, and the result rounded to int8, in one launch."""
    fits = order_for(block.rows, block.columns, caps).lanes == _ROUNDED.lanes and block.rows % (2 * UNIT) == 0
    return takes(block) and fits and columns <= _MOST_ROUNDED and not caps.software and quantise.fuses(caps)


def rounded_dispatch(block: Block, x: Quantised, out: Quantised, columns: int, caps: Caps) -> Dispatch:
    """SwiGLU of a whole matrix's gate and up rows into int8 columns, with the bits of the launches it joins."""
    rows, order = block.rows // 2, _ROUNDED
    source = write_kernel(block.kind, columns, order, Epilogue.SWIGLU, caps, WHOLE, rounded=True)
    constants = (
        ("ROWS", rows), ("UNITS", block.units), ("ALL_UNITS", block.rows * block.units),
        ("Y_STRIDE", out.units * UNIT // 4),
    )  # fmt: skip
    slices = (x.values, out.values, x.scales, *block.streams, out.scales)
    layout = ("read", "write", "read", *("read" for _ in block.streams), "write")
    kernel = Kernel(source, layout, constants, f"fast matvec {block.kind.name}")
    return Dispatch(kernel, slices, spread(rows // UNIT))
