"""Runs single operations on arrays: for the self-test and for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError
from app.engine.device import Gpu
from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.memory import Allocator, Slice, upload
from app.engine.ops.matvec import Activations
from app.engine.program import Dispatch, compile_program
from app.engine.runner import Runner
from app.engine.weights.layout import pack
from app.engine.weights.matrix import Block

_BUDGET = 64 << 20


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

    def compare(self, name: str, got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
        """GpuError where ``got`` is off by more than ``tolerance`` of the largest value expected."""
        error = np.abs(got - expected).max() / (np.abs(expected).max() + 1e-9)
        if not error <= tolerance:
            raise GpuError(
                f"{self.gpu.info.name} failed its check: {name} is off by {error:.1e}.",
                "Update its driver; until then this device can join and ask.",
            )

    def close(self) -> None:
        self.allocator.free_all()


def random_matrix(
    kind: TensorType, rows: int, columns: int, seed: int, scale: float | None = None
) -> NDArray[np.uint8]:
    """GGUF bytes of a matrix with finite, ordinary values. ``scale``: deviation of blocks' scales, or of floats."""
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
