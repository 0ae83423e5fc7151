"""Matrix times prompt columns: a GEMM whose bits depend on neither the chunking nor the placement."""

from __future__ import annotations

from app.engine.memory import Slice
from app.engine.ops.matmul.placement import WIDE_SHARED_BYTES, Placement, placement_for
from app.engine.ops.matmul.source import write_kernel
from app.engine.ops.matvec import Activations, reference
from app.engine.placement import Epilogue
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block

__all__ = ["WIDE_SHARED_BYTES", "Placement", "dispatch", "placement_for", "reference"]


def dispatch(
    block: Block,
    x: Activations,
    y: Activations,
    columns: int,
    placement: Placement,
    *,
    epilogue: Epilogue = Epilogue.STORE,
    bias: Slice | None = None,
) -> Dispatch:
    """One block of a matrix; ``columns`` is a multiple of the placement's, buffers reach that far."""
    slices = [x.slice, y.slice, *block.streams] + ([bias] if bias else [])
    constants: dict[str, int | float] = {
        "ROWS": block.rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units,
        "X_STRIDE": x.stride // 4, "Y_STRIDE": y.stride, "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    source = write_kernel(block.kind, placement, epilogue, bias=bias is not None)
    kernel = Kernel(source, layout, tuple(constants.items()), f"matmul {block.kind.name}")
    grid = (-(-block.rows // placement.rows), -(-columns // placement.columns), 1)
    return Dispatch(kernel, tuple(slices), grid)
