"""The buffers a mixture works in."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.memory import Buffers, Slice
from app.engine.ops.experts.prompt import SMALLEST_TILE, TILE_BYTES, Groups, tile_count
from app.engine.ops.experts.shape import ExpertShape, with_shared
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised, make_quantised
from app.engine.weights.layout import stride


@dataclass(frozen=True)
class ExpertBuffers:
    """For every column ``logits`` and ``routes``; for every column and slot ``gate_up``, ``inner`` and ``outputs``.

    ``gate_up`` and ``outputs`` share their memory: one is read before the other is written.
    """

    logits: Activations
    routes: Slice
    groups: Groups
    gate_up: Activations
    inner: Activations
    outputs: Activations
    quantised: Quantised


def make_expert_buffers(buffers: Buffers, shape: ExpertShape, hidden: int, columns: int) -> ExpertBuffers:
    """Room for up to ``columns`` columns of either class; OutOfMemory past the pledge."""
    pairs = columns * shape.slots
    tiles = tile_count(with_shared(shape), columns, SMALLEST_TILE)
    sizes = {
        "logits": columns * stride(shape.logits) * 4,
        "routes": columns * shape.slots * 8,
        "pairs": pairs * 4,
        "tiles": tiles * TILE_BYTES,
        "wide": pairs * max(stride(2 * shape.inner), stride(hidden)) * 4,
        "inner": pairs * stride(shape.inner) * 4,
    }
    made = {name: buffers.buffer(size, "scratch") for name, size in sizes.items()}
    return ExpertBuffers(
        logits=Activations(made["logits"], stride(shape.logits)),
        routes=made["routes"],
        groups=Groups(made["pairs"], made["tiles"]),
        gate_up=Activations(made["wide"], stride(2 * shape.inner)),
        inner=Activations(made["inner"], stride(shape.inner)),
        outputs=Activations(made["wide"], stride(hidden)),
        quantised=make_quantised(buffers, shape.inner, pairs),
    )
