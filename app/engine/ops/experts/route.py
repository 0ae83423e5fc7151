"""Which experts each column goes to, and with what weight."""

from __future__ import annotations

from app.engine.memory import Slice
from app.engine.ops.experts.shape import ROUTE_STRUCT, ExpertShape
from app.engine.ops.matvec import Activations
from app.engine.ops.render import template
from app.engine.program import Dispatch, Kernel

_OVER_CHOSEN = """    for (var k = 0u; k < USED; k++) {
        total += exp(chosen[k] - chosen[0]);
    }"""

_OVER_ALL = """    for (var i = thread; i < COUNT; i += THREADS) {
        total += exp(logits[base + i] - chosen[0]);
    }
    sums[thread] = total;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (thread < half) { sums[thread] += sums[thread + half]; }
        workgroupBarrier();
    }
    total = sums[0];"""


def route_dispatch(logits: Activations, routes: Slice, shape: ExpertShape, columns: int) -> Dispatch:
    """``logits`` [columns, count and, where an expert is shared, its gate] -> ``routes`` [columns, slots]."""
    source = template("experts/route.wgsl").substitute(
        route=ROUTE_STRUCT,
        quads=-(-shape.count // 4),
        used=shape.used,
        total=_OVER_CHOSEN if shape.normalised else _OVER_ALL,
    )
    constants = (("COUNT", shape.count), ("USED", shape.used), ("SLOTS", shape.slots), ("STRIDE", logits.stride))
    return Dispatch(Kernel(source, ("read", "write"), constants, "route"), (logits.slice, routes), (columns, 1, 1))
