"""The experts' outputs joined and added to the residual stream."""

from __future__ import annotations

from app.engine.memory import Slice
from app.engine.ops.experts.shape import ROUTE_STRUCT, ExpertShape
from app.engine.ops.matvec import Activations
from app.engine.ops.render import template
from app.engine.program import Dispatch, Kernel

_SHARED_BINDING = "@group(0) @binding(3) var<storage, read> shared_output: array<f32>;"
_SHARED_RESULT = "fma(routes[id.y * SLOTS + USED].weight, shared_output[id.y * SHARED_STRIDE + id.x], sum)"


def combine_dispatch(
    outputs: Activations, h: Activations, routes: Slice, shape: ExpertShape, size: int, columns: int,
    shared: Activations | None = None,
) -> Dispatch:  # fmt: skip
    """``outputs`` [columns * used, size] and ``shared`` [columns, size], weighted, onto ``h`` [columns, size]."""
    source = template("experts/combine.wgsl").substitute(
        route=ROUTE_STRUCT,
        shared_binding=_SHARED_BINDING if shared else "",
        result=_SHARED_RESULT if shared else "sum",
    )
    constants = {
        "SIZE": size, "USED": shape.used, "SLOTS": shape.slots, "STRIDE": outputs.stride, "H_STRIDE": h.stride,
    }  # fmt: skip
    if shared:
        constants["SHARED_STRIDE"] = shared.stride
    slices = (outputs.slice, h.slice, routes, *((shared.slice,) if shared else ()))
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    kernel = Kernel(source, layout, tuple(constants.items()), "experts combine")
    return Dispatch(kernel, slices, (-(-size // 128), columns, 1))
