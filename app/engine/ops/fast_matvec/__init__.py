"""Matrix times step columns in the fast arithmetic: int8 activations, packed dot products (ADR 8)."""

from __future__ import annotations

from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.ops.fast_matvec.order import is_possible, order_of, sets_of
from app.engine.ops.fast_matvec.source import WHOLE, write_kernel
from app.engine.ops.fast_matvec.usual import placement_of, usual_placement
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised
from app.engine.ops.render import has_extra
from app.engine.placement import Epilogue, Job, Placement
from app.engine.program import Dispatch, Kernel, spread
from app.engine.weights.layout import UNIT
from app.engine.weights.matrix import Block

__all__ = ["dispatch", "is_possible", "order_of", "rounded_dispatch", "rounds", "takes", "usual_placement"]


def takes(block: Block) -> bool:
    """Whether a format has whole numbers to multiply."""
    return has_extra(block.kind)


def _job_of(block: Block, epilogue: Epilogue, width: int, *, rounded: bool = False) -> Job:
    """The job of multiplying a block with ``width`` columns."""
    return Job(block.kind, block.rows, block.units, epilogue, width, rounded)


def dispatch(
    block: Block, x: Quantised, y: Activations, columns: int, caps: Caps, *,
    epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None, weights: Activations | None = None,
    placement: Placement | None = None,
) -> Dispatch:  # fmt: skip
    """One block of a matrix over quantised columns. For SWIGLU the block holds all gate rows, then all up rows."""
    job = _job_of(block, epilogue, columns)
    order, place = order_of(job, caps), placement or placement_of(job, caps)
    rows = block.rows // sets_of(epilogue)
    source = write_kernel(block.kind, order, place, epilogue, caps, WHOLE, bias=bias is not None)
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
    x_groups, y_groups, _ = spread(-(-rows // (place.teams * place.rows)))
    return Dispatch(kernel, slices, (x_groups, y_groups, columns // place.columns))


def rounds(block: Block, columns: int, caps: Caps) -> bool:
    """Whether gate and up rows are joined, and the result rounded to int8, in one launch."""
    return takes(block) and placement_of(_job_of(block, Epilogue.SWIGLU, columns, rounded=True), caps).fused


def rounded_dispatch(
    block: Block, x: Quantised, out: Quantised, columns: int, caps: Caps, *,
    placement: Placement | None = None,
) -> Dispatch:  # fmt: skip
    """SwiGLU of a whole matrix's gate and up rows into int8 columns, with the bits of the launches it joins."""
    job = _job_of(block, Epilogue.SWIGLU, columns, rounded=True)
    rows, place = block.rows // 2, placement or placement_of(job, caps)
    source = write_kernel(block.kind, order_of(job, caps), place, Epilogue.SWIGLU, caps, WHOLE)
    constants = (
        ("ROWS", rows), ("UNITS", block.units), ("ALL_UNITS", block.rows * block.units),
        ("Y_STRIDE", out.units * UNIT // 4),
    )  # fmt: skip
    slices = (x.values, out.values, x.scales, *block.streams, out.scales)
    layout = ("read", "write", "read", *("read" for _ in block.streams), "write")
    kernel = Kernel(source, layout, constants, f"fast matvec {block.kind.name}")
    x_groups, y_groups, _ = spread(rows // UNIT)
    return Dispatch(kernel, slices, (x_groups, y_groups, columns // place.columns))
