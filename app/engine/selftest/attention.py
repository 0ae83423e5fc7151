"""Attention: as a step and as a prompt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.ops import attention, rope
from app.engine.ops.rope import Cache, HeadShape
from app.engine.selftest.bench import Bench
from app.engine.types import KvFormat
from app.engine.workspace import Run, record_array

_TOLERANCE = {KvFormat.F32: 1e-4, KvFormat.F16: 1e-2, KvFormat.INT8: 3e-2}


def check_attention(bench: Bench, shape: HeadShape, kv: KvFormat) -> None:
    """Rotates and stores 70 columns at once, then attends from the last one: as a step, and as a prompt."""
    seen, gpu = 70, bench.gpu
    rows = np.random.default_rng(5).normal(size=(seen, shape.qkv_size)).astype(np.float32)
    cache, table = _empty_cache(bench, shape, seen, kv), bench.put(rope.angles(shape, 10_000.0, seen, None))
    step, prompt = (bench.activations(np.full((seen, shape.heads * shape.size), np.nan)) for _ in range(2))
    partial, state = (bench.put(np.zeros(n // 4, np.float32)) for n in attention.partial_bytes(shape, seen, 2))
    records, qkv = bench.put(record_array([Run([0] * seen, 0)], seen, seen)), bench.activations(rows)
    threads = attention.SOFTWARE_THREADS if gpu.caps.software else attention.THREADS
    turn = rope.dispatch(records, qkv, cache, table, shape, seen)
    split = attention.split_dispatches(records, qkv, cache, partial, state, step, shape, seen, 2, threads)
    whole = attention.whole_dispatch(records, qkv, cache, prompt, shape, seen, threads, gpu.caps.shared)
    expected = _attention_reference(rows, shape).reshape(-1)
    bench.compare("attention", bench.run([turn, *split], step, seen)[-1], expected, _TOLERANCE[kv])
    bench.compare("prompt attention", bench.run([whole], prompt, seen)[-1], expected, _TOLERANCE[kv])


def _empty_cache(bench: Bench, shape: HeadShape, rows: int, kv: KvFormat) -> Cache:
    keys, values = (bench.put(np.zeros(rope.cache_bytes(shape, rows, kv) // 4, np.uint32)) for _ in range(2))
    if kv is not KvFormat.INT8:
        return Cache(keys, values, kv)
    return Cache(keys, values, kv, bench.put(np.zeros(rope.scale_bytes(shape, rows) // 4, np.float32)))


def _attention_reference(rows: NDArray[np.float32], shape: HeadShape) -> NDArray[np.float64]:
    heads = rows.astype(np.float64).reshape(len(rows), -1, shape.size)
    turned = np.stack(
        [rope.reference(h[: shape.heads + shape.kv_heads], p, shape, 10_000.0) for p, h in enumerate(heads)]
    )
    first, last = shape.heads + shape.kv_heads, shape.heads + 2 * shape.kv_heads
    gate = heads[-1, last:] if shape.gated else None
    return attention.reference(turned[-1, : shape.heads], turned[:, shape.heads :], heads[:, first:last], gate)
