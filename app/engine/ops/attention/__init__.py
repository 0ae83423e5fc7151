"""Causal flash attention over the caches: split over the keys for step columns, in tiles for prompt columns."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError
from app.engine.ops.attention.splits import (
    SOFTWARE_THREADS,
    THREADS,
    partial_bytes,
    split_dispatches,
    split_length,
    splits_within,
)
from app.engine.ops.attention.tiles import LARGE, PORTABLE, Tile, tile_dispatch, tile_for, whole_dispatch
from app.engine.ops.rope import HeadShape

__all__ = [
    "LARGE",
    "PORTABLE",
    "SOFTWARE_THREADS",
    "THREADS",
    "Tile",
    "check_shape",
    "partial_bytes",
    "reference",
    "split_dispatches",
    "split_length",
    "splits_within",
    "tile_dispatch",
    "tile_for",
    "whole_dispatch",
]


def check_shape(shape: HeadShape) -> None:
    """ModelError for head sizes the kernels do not lay out."""
    if shape.size % 8 or shape.size > 512 or shape.heads % shape.kv_heads:
        raise ModelError(f"Attention heads of size {shape.size} are not supported.", "Pick another model.")


def reference(
    q: NDArray[np.float64],
    k: NDArray[np.float64],
    v: NDArray[np.float64],
    gate: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """One column in float64: q and gate [heads, size], k and v [seen, kv heads, size] -> [heads, size]."""
    per_kv = q.shape[0] // k.shape[1]
    out = np.empty_like(q)
    for head in range(q.shape[0]):
        scores = k[:, head // per_kv] @ q[head] / math.sqrt(q.shape[1])
        weights = np.exp(scores - scores.max())
        out[head] = weights / weights.sum() @ v[:, head // per_kv]
    return out if gate is None else out / (1 + np.exp(-gate))
