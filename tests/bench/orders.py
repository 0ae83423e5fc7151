"""Which placement of the fast matvec is quickest for which matrix: ``python -m tests.bench.orders``."""

from __future__ import annotations

import itertools

from app.engine.adapter import choose_adapter
from app.engine.device import Gpu
from app.engine.gguf.types import TensorType
from app.engine.memory import Allocator
from app.engine.ops import fast_matvec, quantise
from app.engine.ops.fast_matvec import Order
from app.engine.ops.matvec import Activations
from app.engine.weights.layout import packed_bytes, units
from app.engine.weights.matrix import Block
from tests.bench.timestamps import Stopwatch

SHAPES = [
    (TensorType.Q4_0, 4096, 2048), (TensorType.Q4_0, 2048, 2048), (TensorType.Q4_0, 12288, 2048),
    (TensorType.Q4_0, 2048, 6144), (TensorType.Q4_0, 151936, 2048), (TensorType.Q4_0, 16480, 5120),
    (TensorType.Q4_0, 5120, 6144), (TensorType.Q4_0, 34816, 5120), (TensorType.Q4_0, 5120, 17408),
    (TensorType.Q6_K, 248320, 5120), (TensorType.Q8_0, 12288, 2048), (TensorType.Q8_0, 2048, 6144),
]  # fmt: skip
ROTATED = 400 << 20
"""Weights of one measurement: more than any cache holds."""


def main() -> None:
    gpu = Gpu.open(choose_adapter())
    watch = Stopwatch(gpu)
    for kind, rows, columns in SHAPES:
        allocator = Allocator(gpu, 1 << 40)
        sizes = packed_bytes(kind, rows, columns)
        copies = max(2, min(ROTATED // sum(sizes), 40))
        blocks = [
            Block(kind, 0, rows, columns, tuple(allocator.buffer(size, "weights") for size in sizes))
            for _ in range(copies)
        ]
        x = quantise.make_quantised(allocator, columns, 16)
        y = Activations(allocator.buffer(16 * rows * 4, "scratch"), rows)
        results: list[tuple[float, Order]] = []
        for lanes, threads, each in itertools.product((8, 16, 32, 64, 128, 256), (64, 128, 256), (1, 2, 4)):
            if lanes > threads or lanes > 2 * units(columns):
                continue
            order = Order(lanes, threads // lanes, each)
            launches = [fast_matvec.dispatch(b, x, y, 1, gpu.caps, order=order) for b in blocks]
            results.append((watch.time(launches, 3) / copies, order))
        results.sort(key=lambda r: r[0])
        usual = next(t for t, o in results if o == fast_matvec.order_for(rows, columns, gpu.caps))
        print(f"{kind.name} {rows} x {columns}: default {usual * 1e6:.2f} us; best:")
        for seconds, order in results[:5]:
            print(f"    {seconds * 1e6:8.2f} us {sum(sizes) / seconds / 1e9:7.0f} GB/s {order}")
        allocator.free_all()
    gpu.close()


if __name__ == "__main__":
    main()
