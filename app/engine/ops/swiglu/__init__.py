"""Gate and up halves joined: silu(gate) * up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.ops.matvec import Activations
from app.engine.ops.render import template
from app.engine.program import Dispatch, Kernel


def dispatch(x: Activations, y: Activations, size: int, columns: int) -> Dispatch:
    """``x`` holds [columns, 2 * size]: all gates, then all ups."""
    constants = (("SIZE", size), ("X_STRIDE", x.stride), ("Y_STRIDE", y.stride))
    kernel = Kernel(template("swiglu/kernel.wgsl").substitute(), ("read", "write"), constants, "swiglu")
    return Dispatch(kernel, (x.slice, y.slice), (-(-size // 128), columns, 1))


def reference(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """[columns, size] in float64."""
    gate, up = np.split(x, 2, axis=1)
    return gate / (1 + np.exp(-gate)) * up
