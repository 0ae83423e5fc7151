"""The fast arithmetic: int8 activations times whole-number weights, against float64 on the same int8 inputs."""

from dataclasses import replace

import numpy as np
import pytest

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.ops import fast_matmul, fast_matvec, matvec, quantise
from app.engine.ops.matvec import Norm
from app.engine.ops.render import has_extra
from app.engine.placement import Epilogue
from app.engine.program import Dispatch
from app.engine.selftest import Bench, random_matrix
from app.engine.weights.reference import dequantise

KINDS = [k for k in TensorType if has_extra(k)]


def quantised(
    bench: Bench, x: np.ndarray, norm: Norm | None = None, caps: Caps | None = None
) -> tuple[quantise.Quantised, list[Dispatch]]:
    out = quantise.make_quantised(bench.allocator, x.shape[1], len(x))
    return out, [quantise.dispatch(bench.activations(x), out, len(x), caps or bench.gpu.caps, norm)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("columns", [256, 1280])
def test_matvec_equals_float64_on_the_same_whole_numbers(bench: Bench, kind: TensorType, columns: int) -> None:
    rows, width = 37, 3
    raw = random_matrix(kind, rows, columns, 3)
    weights = dequantise(kind, raw, rows, columns).astype(np.float64)
    x = np.random.default_rng(4).normal(size=(width, columns)).astype(np.float32)
    y = bench.activations(np.full((width, 64), np.nan))
    q, before = quantised(bench, x)
    step = fast_matvec.dispatch(bench.block(kind, raw, rows, columns), q, y, width, bench.gpu.caps)
    got = bench.run([*before, step], y, width)[:, :rows]
    expected = matvec.reference(weights, quantise.reference(x.astype(np.float64)))
    assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("epilogue", "rows", "columns", "subgroups"),
    [
        (Epilogue.STORE, 64, 320, True),
        (Epilogue.ADD, 64, 320, False),
        (Epilogue.SWIGLU, 64, 320, True),
        (Epilogue.STORE, 8192, 32, True),
        (Epilogue.ADD, 6, 4128, False),
    ],
)
def test_a_column_has_the_same_bits_at_any_width(
    bench: Bench, epilogue: Epilogue, rows: int, columns: int, subgroups: bool
) -> None:
    kind, width = TensorType.Q4_0, 16
    caps = replace(bench.gpu.caps, software=False, subgroup=bench.gpu.caps.subgroup if subgroups else 0)
    raw = random_matrix(kind, rows, columns, 3)
    block = bench.block(kind, raw, rows, columns)
    x = np.random.default_rng(4).normal(size=(width, columns)).astype(np.float32)
    norm = Norm(bench.put(np.linspace(0.5, 1.5, columns, dtype=np.float32)), columns, 1e-6)
    outputs: list[np.ndarray] = []
    for size in (1, 2, 4, 16):
        y = bench.activations(np.zeros((width, rows)))
        for start in range(0, width, size):
            q, before = quantised(bench, x[start : start + size], norm, caps)
            into = matvec.Activations(y.slice, y.stride, start * y.stride)
            count = min(size, width - start)
            dispatch = fast_matvec.dispatch(block, q, into, count, caps, epilogue=epilogue)
            bench.run([*before, dispatch], y, width)
        outputs.append(bench.run([], y, width))
    assert np.abs(outputs[0]).max() > 0
    assert all(np.array_equal(o, outputs[0]) for o in outputs[1:])


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_matmul_equals_float64_and_all_placements_and_chunkings_agree(bench: Bench, kind: TensorType) -> None:
    rows, columns, width = 70, 768, 64
    raw = random_matrix(kind, rows, columns, 3)
    weights = dequantise(kind, raw, rows, columns).astype(np.float64)
    x = np.random.default_rng(4).normal(size=(width, columns)).astype(np.float32)
    expected = matvec.reference(weights, quantise.reference(x.astype(np.float64)))
    block, outputs = bench.block(kind, raw, rows, columns), list[np.ndarray]()
    tiled = replace(bench.gpu.caps, software=False)
    for caps, size, tile in ((bench.gpu.caps, 64, 0), (bench.gpu.caps, 16, 0), *((tiled, 60, t) for t in (64, 32, 16))):
        y = bench.activations(np.full((width, 96), np.nan))
        for start in range(0, width, size):
            q, before = quantised(bench, x[start : start + size])
            into, count = matvec.Activations(y.slice, y.stride, start * y.stride), min(size, width - start)
            bench.run([*before, fast_matmul.dispatch(block, q, into, count, caps, tile=tile)], y, width)
        outputs.append(bench.run([], y, width)[:, :rows])
    assert np.abs(outputs[0] - expected).max() <= 1e-4 * np.abs(expected).max()
    assert all(np.array_equal(o, outputs[0]) for o in outputs[1:])


@pytest.mark.parametrize("width", [1, 2])
def test_gate_and_up_rounded_on_the_way_have_the_bits_of_two_launches(bench: Bench, width: int) -> None:
    rows, columns, kind = 192, 320, TensorType.Q4_0
    caps = replace(bench.gpu.caps, software=False)
    block = bench.block(kind, random_matrix(kind, rows, columns, 3), rows, columns)
    x, before = quantised(bench, np.random.default_rng(4).normal(size=(width, columns)).astype(np.float32))
    assert fast_matvec.rounds(block, width, caps)
    y = bench.activations(np.zeros((width, rows // 2)))
    apart, joined = (quantise.make_quantised(bench.allocator, rows // 2, width) for _ in range(2))
    two = [fast_matvec.dispatch(block, x, y, width, caps, epilogue=Epilogue.SWIGLU)]
    two.append(quantise.dispatch(y, apart, width, caps))
    bench.run([*before, *two, fast_matvec.rounded_dispatch(block, x, joined, width, caps)], y, width)
    for a, b in ((apart.values, joined.values), (apart.scales, joined.scales)):
        got = [bench.run([], matvec.Activations(part, part.size // 4), 1).view(np.uint32) for part in (a, b)]
        assert got[0].any()
        assert np.array_equal(got[0], got[1])
