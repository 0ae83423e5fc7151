"""RMSNorm of prompt columns (step columns normalise inside their matvec)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.ops.matvec import Activations, Norm
from app.engine.ops.render import template
from app.engine.program import Dispatch, Kernel

_IN_PLACE = """@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;"""
_APART = """@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;"""


def dispatch(x: Activations, y: Activations, norm: Norm, columns: int) -> Dispatch:
    """``x`` into ``y`` (or in place); the padding of ``x`` past the true size stays zero."""
    constants = (
        ("X_STRIDE", x.stride // 4), ("Y_STRIDE", y.stride // 4), ("Y_FIRST", y.first // 4),
        ("SIZE", float(norm.size)), ("EPS", norm.epsilon),
    )  # fmt: skip
    if x.slice == y.slice:
        source = template("rmsnorm/kernel.wgsl").substitute(binding=_IN_PLACE, x="y")
        return Dispatch(
            Kernel(source, ("write", "read"), constants, "rmsnorm"), (y.slice, norm.weights), (columns, 1, 1)
        )
    kernel = Kernel(
        template("rmsnorm/kernel.wgsl").substitute(binding=_APART, x="x"),
        ("read", "write", "read"),
        constants,
        "rmsnorm",
    )
    return Dispatch(kernel, (x.slice, y.slice, norm.weights), (columns, 1, 1))


def reference(x: NDArray[np.float64], weights: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """[columns, size] in float64."""
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + epsilon) * weights
