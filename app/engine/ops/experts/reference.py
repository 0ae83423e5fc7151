"""What a mixture of experts should compute, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.ops import swiglu
from app.engine.ops.experts.shape import ExpertShape

Array = NDArray[np.float64]


def route_reference(logits: Array, shape: ExpertShape) -> tuple[NDArray[np.int64], Array]:
    """Experts and weights [columns, slots] in float64; the shared expert has the id ``count``."""
    values = np.where(np.isnan(logits[:, : shape.count]), -np.inf, logits[:, : shape.count])
    ids = np.argsort(-values, axis=1, kind="stable")[:, : shape.used]
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    weights = np.take_along_axis(powers, ids, axis=1)
    weights /= (weights if shape.normalised else powers).sum(axis=1, keepdims=True)
    if not shape.shared_inner:
        return ids, weights
    shared = np.full((len(logits), 1), shape.count)
    gate = 1 / (1 + np.exp(-logits[:, shape.count :][:, :1]))
    return np.hstack([ids, shared]), np.hstack([weights, gate])


def mixture_reference(x: Array, gate_up: Array, down: Array, ids: NDArray[np.int64], weights: Array) -> Array:
    """What the chosen experts give: x [columns, hidden], gate_up [count, 2 * inner, hidden], down
    [count, hidden, inner], ids and weights [columns, used] -> [columns, hidden]."""
    out = np.zeros_like(x)
    for slot in range(ids.shape[1]):
        for expert in np.unique(ids[:, slot]):
            of = ids[:, slot] == expert
            inner = swiglu.reference(x[of] @ gate_up[expert].T)
            out[of] += weights[of, slot, None] * (inner @ down[expert].T)
    return out
