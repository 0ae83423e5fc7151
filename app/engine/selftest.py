"""A throw-away check of a GPU's kernels against NumPy before a model is trusted to it (spec: product R-034)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError
from app.engine.device import Gpu
from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.memory import Allocator, Slice, upload
from app.engine.ops import attention, matmul, matvec, rope
from app.engine.ops.matvec import Activations, Tuning
from app.engine.ops.rope import Cache, HeadShape
from app.engine.program import Dispatch, compile_program
from app.engine.runner import Runner
from app.engine.types import KvFormat
from app.engine.weights.layout import pack
from app.engine.weights.matrix import Block
from app.engine.weights.reference import dequantise
from app.engine.workspace import Run, record_array

Array = NDArray[np.float64]

_BUDGET = 64 << 20
_ROWS, _COLUMNS, _WIDTH = 80, 256, 64
_TOLERANCE = 1e-4
_CACHE_TOLERANCE = {KvFormat.F32: 1e-4, KvFormat.F16: 1e-2, KvFormat.INT8: 3e-2}


class Bench:
    """Runs single operations on arrays."""

    def __init__(self, gpu: Gpu) -> None:
        self.allocator = Allocator(gpu, _BUDGET)
        self.gpu = gpu
        self._runner = Runner(gpu, self.allocator)

    def put(self, values: np.ndarray) -> Slice:
        target = self.allocator.buffer(values.nbytes, "self-test")
        upload(self.gpu, target, values)
        return target

    def activations(self, values: np.ndarray) -> Activations:
        """[columns, stride] float32."""
        data = np.ascontiguousarray(values, np.float32)
        return Activations(self.put(data), data.shape[1])

    def block(self, kind: TensorType, raw: NDArray[np.uint8], rows: int, columns: int) -> Block:
        packed = pack(kind, raw, rows, columns)
        streams = tuple(self.put(s) for s in (packed.quants, packed.extra) if s.size)
        return Block(kind, 0, rows, columns, streams)

    def run(self, dispatches: Iterable[Dispatch], result: Activations, columns: int) -> NDArray[np.float32]:
        """[columns, stride] of ``result`` after the dispatches."""
        program = compile_program(self.gpu, list(dispatches))
        data = self._runner.run([program], [(result.slice, columns * result.stride * 4)])
        return data.view(np.float32).reshape(columns, result.stride)

    def close(self) -> None:
        self.allocator.free_all()


def random_matrix(
    kind: TensorType, rows: int, columns: int, seed: int, scale: float | None = None
) -> NDArray[np.uint8]:
    """GGUF bytes of a matrix with finite, ordinary values; ``scale`` is the deviation of blocks' scales or of floats."""
    rng = np.random.default_rng(seed)
    block = BLOCKS[kind]
    if block.values == 1:
        return _random_floats(kind, rng.normal(scale=scale or 1.0, size=rows * columns).astype(np.float32))
    raw = rng.integers(0, 256, (rows * columns // block.values, block.bytes), dtype=np.uint8)
    for place in _HALF_PLACES.get(kind, (0,)):
        scales = rng.normal(scale=scale or 0.02, size=len(raw)).astype(np.float16)
        raw[:, place : place + 2] = scales.view(np.uint8).reshape(-1, 2)
    return raw.reshape(-1)


_HALF_PLACES: dict[TensorType, tuple[int, ...]] = {
    TensorType.Q4_1: (0, 2),
    TensorType.Q5_1: (0, 2),
    TensorType.Q2_K: (80, 82),
    TensorType.Q3_K: (108,),
    TensorType.Q4_K: (0, 2),
    TensorType.Q5_K: (0, 2),
    TensorType.Q6_K: (208,),
}


def _random_floats(kind: TensorType, values: NDArray[np.float32]) -> NDArray[np.uint8]:
    if kind is TensorType.F16:
        return values.astype(np.float16).view(np.uint8)
    if kind is TensorType.BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return values.view(np.uint8)


def check_kernels(gpu: Gpu, kinds: Iterable[TensorType], shape: HeadShape, kv: KvFormat, tuning: Tuning) -> None:
    """Runs the kernels a model will use; GpuError names the one whose result is wrong."""
    bench = Bench(gpu)
    try:
        for kind in sorted(set(kinds)):
            _check_matrix(bench, kind, tuning)
        _check_attention(bench, shape, kv)
    finally:
        bench.close()


def _check_matrix(bench: Bench, kind: TensorType, tuning: Tuning) -> None:
    raw = random_matrix(kind, _ROWS, _COLUMNS, 3)
    weights = dequantise(kind, raw, _ROWS, _COLUMNS).astype(np.float64)
    x = np.random.default_rng(4).normal(size=(_WIDTH, _COLUMNS)).astype(np.float32)
    block, source = bench.block(kind, raw, _ROWS, _COLUMNS), bench.activations(x)
    expected = matvec.reference(weights, x.astype(np.float64))
    step, prompt = (bench.activations(np.full((_WIDTH, 96), np.nan)) for _ in range(2))
    got = bench.run([matvec.dispatch(block, source, step, 2, tuning)], step, 2)
    _compare(bench.gpu, f"matvec {kind.name}", got[:, :_ROWS], expected[:2])
    placement = matmul.placement_for(_ROWS, _WIDTH, bench.gpu.caps.shared, software=bench.gpu.caps.software)
    tile = matmul.dispatch(block, source, prompt, _WIDTH, placement)
    _compare(bench.gpu, f"matmul {kind.name}", bench.run([tile], prompt, _WIDTH)[:, :_ROWS], expected)


def _check_attention(bench: Bench, shape: HeadShape, kv: KvFormat) -> None:
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
    _compare(gpu, "attention", bench.run([turn, *split], step, seen)[-1], expected, _CACHE_TOLERANCE[kv])
    _compare(gpu, "prompt attention", bench.run([whole], prompt, seen)[-1], expected, _CACHE_TOLERANCE[kv])


def _empty_cache(bench: Bench, shape: HeadShape, rows: int, kv: KvFormat) -> Cache:
    keys, values = (bench.put(np.zeros(rope.cache_bytes(shape, rows, kv) // 4, np.uint32)) for _ in range(2))
    if kv is not KvFormat.INT8:
        return Cache(keys, values, kv)
    return Cache(keys, values, kv, bench.put(np.zeros(rope.scale_bytes(shape, rows) // 4, np.float32)))


def _attention_reference(rows: NDArray[np.float32], shape: HeadShape) -> Array:
    heads = rows.astype(np.float64).reshape(len(rows), -1, shape.size)
    turned = np.stack(
        [rope.reference(h[: shape.heads + shape.kv_heads], p, shape, 10_000.0) for p, h in enumerate(heads)]
    )
    first, last = shape.heads + shape.kv_heads, shape.heads + 2 * shape.kv_heads
    gate = heads[-1, last:] if shape.gated else None
    return attention.reference(turned[-1, : shape.heads], turned[:, shape.heads :], heads[:, first:last], gate)


def _compare(gpu: Gpu, name: str, got: np.ndarray, expected: np.ndarray, tolerance: float = _TOLERANCE) -> None:
    error = np.abs(got - expected).max() / (np.abs(expected).max() + 1e-9)
    if not error <= tolerance:
        raise GpuError(
            f"{gpu.info.name} failed its check: {name} is off by {error:.1e}.",
            "Update its driver; until then this device can join and ask.",
        )
