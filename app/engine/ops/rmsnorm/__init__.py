"""RMSNorm of prompt columns (step columns normalise inside their matvec)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.ops.matvec import Activations, Norm
from app.engine.ops.render import template
from app.engine.program import Dispatch, Kernel


def dispatch(x: Activations, y: Activations, norm: Norm, columns: int) -> Dispatch:
    """Columns of the same stride; the padding past the true size stays zero."""
    constants = (("STRIDE", x.stride // 4), ("SIZE", float(norm.size)), ("EPS", norm.epsilon))
    kernel = Kernel(template("rmsnorm/kernel.wgsl").substitute(), ("read", "write", "read"), constants, "rmsnorm")
    return Dispatch(kernel, (x.slice, y.slice, norm.weights), (columns, 1, 1))


def reference(x: NDArray[np.float64], weights: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """[columns, size] in float64."""
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + epsilon) * weights
