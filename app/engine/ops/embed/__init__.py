"""Rows of the embedding, dequantised into the residual stream."""

from __future__ import annotations

from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template, unit_reader, unrolled, weight_bindings
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block


def dispatch(block: Block, records: Slice, h: Activations, columns: int) -> Dispatch:
    """Tokens outside the block's rows are left to the block that has them."""
    source = template("embed/kernel.wgsl").substitute(
        column=COLUMN_STRUCT,
        weights=weight_bindings(block.kind, 2),
        reader=unit_reader(block.kind),
        store=unrolled(8, lambda i: f"    h[at + {i}u] = w[{i}];"),
    )
    constants: dict[str, int | float] = {
        "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "STRIDE": h.stride // 4,
        "FIRST": block.first, "ROWS": block.rows,
    }  # fmt: skip
    layout = ("read", "write") + ("read",) * len(block.streams)
    kernel = Kernel(source, layout, tuple(constants.items()), f"embed {block.kind.name}")
    return Dispatch(kernel, (records, h.slice, *block.streams), (-(-block.units // 32), columns, 1))
