"""Gated DeltaNet: a prompt chunk, then step columns upon it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.engine.memory import Slice
from app.engine.ops import delta
from app.engine.ops.delta import DeltaShape, DeltaState
from app.engine.ops.matvec import Activations
from app.engine.selftest.bench import Bench
from app.engine.types import ColumnClass
from app.engine.workspace import Run, record_array

_PROMPT, _STEP = 5, 2
_TOLERANCE = 1e-3


def check_delta(bench: Bench, shape: DeltaShape) -> None:
    """One key head and its value heads: the others differ by numbers only."""
    shape = replace(shape, key_heads=1, value_heads=shape.value_heads // shape.key_heads)
    rng = np.random.default_rng(6)
    mixed = rng.normal(size=(_PROMPT + _STEP, shape.rows)).astype(np.float32)
    taps = rng.normal(scale=0.5, size=(shape.channels, shape.taps)).astype(np.float32)
    a = -np.exp(rng.normal(size=shape.value_heads)).astype(np.float32)
    dt, norm = (rng.normal(size=n).astype(np.float32) for n in (shape.value_heads, shape.size))
    columns, kernels, decay, bias, weight = (v.astype(np.float64) for v in (mixed, taps, a, dt, norm))
    expected, _ = delta.reference(columns, kernels, decay, bias, weight, shape)
    state = DeltaState(*(bench.put(np.zeros(n // 4, np.float32)) for n in delta.state_bytes(shape, 1)))
    weights = bench.put(delta.joined_weights(taps, a, dt, norm))
    got = [
        _columns(bench, mixed[first:last], first, kind, state, weights, shape)
        for first, last, kind in ((0, _PROMPT, ColumnClass.PROMPT), (_PROMPT, _PROMPT + _STEP, ColumnClass.STEP))
    ]
    bench.compare("DeltaNet", np.concatenate(got), expected, _TOLERANCE)


def _columns(
    bench: Bench, mixed: np.ndarray, first: int, kind: ColumnClass, state: DeltaState, weights: Slice,
    shape: DeltaShape,
) -> np.ndarray:  # fmt: skip
    count, stride = len(mixed), -(-shape.rows // 4) * 4
    records = bench.put(record_array([Run([0] * count, first)], count, _PROMPT + _STEP))
    source = Activations(bench.put(np.pad(mixed, ((0, 0), (0, stride - shape.rows)))), stride)
    out = bench.activations(np.full((count, shape.inner), np.nan))
    shared = bench.gpu.caps.shared
    launches = delta.dispatches(records, source, state, weights, out, shape, count, kind, shared)
    return bench.run(launches, out, count)
