"""Rows of the embedding, dequantised into the residual stream."""

from __future__ import annotations

from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template, unrolled, weight_bindings, weight_reader
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block


def dispatch(block: Block, records: Slice, h: Activations, columns: int) -> Dispatch:
    """Tokens outside the block's rows are left to the block that has them."""
    source = template("embed/kernel.wgsl").substitute(
        column=COLUMN_STRUCT,
        weights=weight_bindings(block.kind, 2, wide=True),
        reader=weight_reader(block.kind),
        store=unrolled(4, _store),
    )
    constants: dict[str, int | float] = {
        "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "STRIDE": h.stride // 4,
        "FIRST": block.first, "ROWS": block.rows,
    }  # fmt: skip
    layout = ("read", "write") + ("read",) * len(block.streams)
    kernel = Kernel(source, layout, tuple(constants.items()), f"embed {block.kind.name}")
    return Dispatch(kernel, (records, h.slice, *block.streams), (-(-block.units // 32), columns, 1))


def _store(j: int) -> str:
    return f"""    let w_{j} = quarter(unit, {j}u);
    h[at + {j}u] = w_{j}[0];
    h[at + {j + 4}u] = w_{j}[1];"""
