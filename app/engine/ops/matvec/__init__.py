"""Matrix times step columns, with the norm before it and the residual, bias or SwiGLU after it fused in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.memory import Slice
from app.engine.ops.matvec.source import outputs_each, write_kernel
from app.engine.ops.matvec.types import Activations, Norm, Tuning
from app.engine.placement import Epilogue
from app.engine.program import Dispatch, Kernel, spread
from app.engine.weights.matrix import Block

__all__ = ["Activations", "Norm", "Tuning", "dispatch", "reference"]


def dispatch(
    block: Block,
    x: Activations,
    y: Activations,
    columns: int,
    tuning: Tuning,
    *,
    epilogue: Epilogue = Epilogue.STORE,
    norm: Norm | None = None,
    bias: Slice | None = None,
    weights: Activations | None = None,
) -> Dispatch:
    """One block of a matrix. For SWIGLU the block holds all gate rows, then all up rows.

    ``weights`` has one float a column, for WEIGHTED_ADD.
    """
    rows = block.rows // 2 if epilogue is Epilogue.SWIGLU else block.rows
    cols = min(columns, tuning.columns)
    source = write_kernel(block.kind, cols, tuning, epilogue, norm=norm is not None, bias=bias is not None)
    slices = [x.slice, y.slice, *block.streams]
    slices += [norm.weights] if norm else []
    slices += [bias] if bias else []
    slices += [weights.slice] if weights else []
    constants: dict[str, int | float] = {
        "ROWS": rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "X_STRIDE": x.stride // 4,
        "Y_STRIDE": y.stride, "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    if epilogue is Epilogue.SWIGLU:
        constants["SECOND"] = rows
    if norm:
        constants |= {"SIZE": float(norm.size), "EPS": norm.epsilon}
    if weights:
        constants |= {"WEIGHT_STRIDE": weights.stride, "WEIGHT_FIRST": weights.first}
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    kernel = Kernel(source, layout, tuple(constants.items()), f"matvec {block.kind.name}")
    each = outputs_each(tuning, epilogue)
    x_groups, y_groups, _ = spread(-(-rows // (tuning.teams * each)))
    return Dispatch(kernel, tuple(slices), (x_groups, y_groups, -(-columns // cols)))


def reference(
    weights: NDArray[np.float64],
    x: NDArray[np.float64],
    epilogue: Epilogue = Epilogue.STORE,
    norm: tuple[NDArray[np.float64], float] | None = None,
) -> NDArray[np.float64]:
    """[columns, rows] in float64; for ADD and WEIGHTED_ADD the caller adds."""
    if norm:
        x = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + norm[1]) * norm[0]
    y = x @ weights.T
    if epilogue is not Epilogue.SWIGLU:
        return y
    gate, up = np.split(y, 2, axis=1)
    return gate / (1 + np.exp(-gate)) * up
