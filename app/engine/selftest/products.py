"""Matrix products of one type of weights: of step and of prompt columns, in both arithmetics."""

from __future__ import annotations

import numpy as np

from app.engine.gguf.types import TensorType
from app.engine.ops import fast_matmul, fast_matvec, matmul, matvec, quantise
from app.engine.ops.matvec import Tuning
from app.engine.selftest.bench import Bench, random_matrix
from app.engine.weights.reference import dequantise

_ROWS, _COLUMNS, _STRIDE = 80, 256, 96
_STEP, _PROMPT = 2, 64
_TOLERANCE = 1e-4


def check_products(bench: Bench, kind: TensorType, tuning: Tuning) -> None:
    """Float inputs."""
    raw, caps = random_matrix(kind, _ROWS, _COLUMNS, 3), bench.gpu.caps
    x = np.random.default_rng(4).normal(size=(_PROMPT, _COLUMNS)).astype(np.float32)
    block, source = bench.block(kind, raw, _ROWS, _COLUMNS), bench.activations(x)
    expected = _expected(kind, raw, x)
    step, prompt = (bench.activations(np.full((_PROMPT, _STRIDE), np.nan)) for _ in range(2))
    got = bench.run([matvec.dispatch(block, source, step, _STEP, tuning)], step, _STEP)
    bench.compare(f"matvec {kind.name}", got[:, :_ROWS], expected[:_STEP], _TOLERANCE)
    placement = matmul.placement_for(_ROWS, _PROMPT, caps.shared, software=caps.software)
    tile = matmul.dispatch(block, source, prompt, _PROMPT, placement)
    bench.compare(f"matmul {kind.name}", bench.run([tile], prompt, _PROMPT)[:, :_ROWS], expected, _TOLERANCE)


def check_fast_products(bench: Bench, kind: TensorType) -> None:
    """int8 inputs, where the type has whole numbers to multiply."""
    raw, caps = random_matrix(kind, _ROWS, _COLUMNS, 3), bench.gpu.caps
    block = bench.block(kind, raw, _ROWS, _COLUMNS)
    if not fast_matvec.takes(block):
        return
    x = np.random.default_rng(4).normal(size=(_PROMPT, _COLUMNS)).astype(np.float32)
    whole = quantise.make_quantised(bench.allocator, _COLUMNS, _PROMPT)
    rounded = quantise.dispatch(bench.activations(x), whole, _PROMPT, caps)
    expected = _expected(kind, raw, quantise.reference(x.astype(np.float64)))
    step, prompt = (bench.activations(np.full((_PROMPT, _STRIDE), np.nan)) for _ in range(2))
    got = bench.run([rounded, fast_matvec.dispatch(block, whole, step, _STEP, caps)], step, _STEP)
    bench.compare(f"fast matvec {kind.name}", got[:, :_ROWS], expected[:_STEP], _TOLERANCE)
    tile = fast_matmul.dispatch(block, whole, prompt, _PROMPT, caps)
    bench.compare(f"fast matmul {kind.name}", bench.run([tile], prompt, _PROMPT)[:, :_ROWS], expected, _TOLERANCE)


def _expected(kind: TensorType, raw: np.ndarray, x: np.ndarray) -> np.ndarray:
    return matvec.reference(dequantise(kind, raw, _ROWS, _COLUMNS).astype(np.float64), x.astype(np.float64))
