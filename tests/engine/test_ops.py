"""Every operation at odd shapes against its float64 reference."""

import numpy as np
import pytest

from app.engine.gguf.types import TensorType
from app.engine.ops import embed, matmul, matvec, rmsnorm, select, swiglu
from app.engine.ops.matmul import Placement
from app.engine.ops.matvec import Activations, Norm, Tuning
from app.engine.options import GPU_TUNING, SOFTWARE_TUNING
from app.engine.placement import Epilogue
from app.engine.program import spread
from app.engine.selftest import Bench, random_matrix
from app.engine.types import MAX_STOPS
from app.engine.weights.reference import dequantise
from app.engine.workspace import Run, record_array

KINDS = pytest.mark.parametrize("kind", list(TensorType), ids=lambda k: k.name)
TUNINGS = [GPU_TUNING, SOFTWARE_TUNING, Tuning(16, 2, 2, 4, 4, fused_norm=True)]


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def matrix(bench: Bench, kind: TensorType, rows: int, columns: int, seed: int = 1):
    raw = random_matrix(kind, rows, columns, seed)
    return bench.block(kind, raw, rows, columns), dequantise(kind, raw, rows, columns).astype(np.float64)


def normal(*shape: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@KINDS
@pytest.mark.parametrize("rows", [7, 131])
def test_matvec_of_every_type(bench: Bench, kind: TensorType, rows: int) -> None:
    block, weights = matrix(bench, kind, rows, 512)
    x = normal(2, 512)
    y = bench.activations(np.full((2, 160), np.nan))
    got = bench.run([matvec.dispatch(block, bench.activations(x), y, 2, GPU_TUNING)], y, 2)
    assert relative(got[:, :rows], matvec.reference(weights, x.astype(np.float64))) < 2e-6
    assert np.isnan(got[:, rows:]).all()


@KINDS
@pytest.mark.parametrize("placement", list(Placement), ids=lambda p: p.name.lower())
def test_matmul_of_every_type(bench: Bench, kind: TensorType, placement: Placement) -> None:
    block, weights = matrix(bench, kind, 71, 512)
    x = normal(64, 512)
    y = bench.activations(np.full((64, 96), np.nan))
    got = bench.run([matmul.dispatch(block, bench.activations(x), y, 64, placement)], y, 64)
    assert relative(got[:, :71], matmul.reference(weights, x.astype(np.float64))) < 2e-6
    assert np.isnan(got[:, 71:]).all()


@pytest.mark.parametrize("tuning", TUNINGS, ids=str)
@pytest.mark.parametrize("columns", [1, 3, 16])
def test_matvec_with_norm_bias_and_residual(bench: Bench, tuning: Tuning, columns: int) -> None:
    block, weights = matrix(bench, TensorType.Q4_1, 99, 96)
    x, base, bias, scale = normal(columns, 96), normal(columns, 128, seed=3), normal(99, seed=4), normal(96, seed=5)
    y = bench.activations(base)
    norm = Norm(bench.put(scale), 96, 1e-5)
    width = next(w for w in (1, 2, 4, 8, 16) if w >= columns)
    padded = np.zeros((width, 96), np.float32)
    padded[:columns] = x
    target = bench.activations(np.zeros((width, 128), np.float32) + np.pad(base, ((0, width - columns), (0, 0))))
    launch = matvec.dispatch(
        block, bench.activations(padded), target, width, tuning,
        epilogue=Epilogue.ADD, norm=norm, bias=bench.put(bias),
    )  # fmt: skip
    got = bench.run([launch], target, width)[:columns, :99]
    expected = matvec.reference(weights, x.astype(np.float64), norm=(scale.astype(np.float64), 1e-5))
    assert relative(got, base[:, :99] + expected + bias) < 3e-6
    assert y.stride == 128


@pytest.mark.parametrize("tuning", TUNINGS, ids=str)
def test_matvec_with_swiglu(bench: Bench, tuning: Tuning) -> None:
    block, weights = matrix(bench, TensorType.Q5_K, 2 * 45, 256)
    x = normal(1, 256) * 0.2
    y = bench.activations(np.full((1, 64), np.nan))
    launch = matvec.dispatch(block, bench.activations(x), y, 1, tuning, epilogue=Epilogue.SWIGLU)
    expected = matvec.reference(weights, x.astype(np.float64), Epilogue.SWIGLU)
    assert relative(bench.run([launch], y, 1)[:, :45], expected) < 5e-6


@pytest.mark.parametrize("tuning", TUNINGS, ids=str)
def test_a_step_column_has_the_same_bits_at_every_width(bench: Bench, tuning: Tuning) -> None:
    block, _ = matrix(bench, TensorType.Q6_K, 200, 512)
    x = normal(16, 512)
    norm = Norm(bench.put(normal(512, seed=9)), 512, 1e-6)
    results = []
    for width in (1, 2, 4, 8, 16):
        y = bench.activations(np.zeros((width, 224), np.float32))
        launch = matvec.dispatch(block, bench.activations(x[:width]), y, width, tuning, norm=norm)
        results.append(bench.run([launch], y, width)[0])
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_a_prompt_column_has_the_same_bits_in_every_chunk_and_placement(bench: Bench) -> None:
    block, _ = matrix(bench, TensorType.Q4_K, 130, 512)
    x, bias = normal(64, 512), bench.put(normal(130, seed=4))
    results = []
    for placement, first, columns in [
        (Placement.WIDE, 0, 64), (Placement.NARROW, 0, 64), (Placement.NARROW, 16, 16), (Placement.ROWWISE, 16, 16),
    ]:  # fmt: skip
        y = bench.activations(np.zeros((columns, 160), np.float32))
        source = bench.activations(x[first : first + columns])
        launch = matmul.dispatch(block, source, y, columns, placement, epilogue=Epilogue.ADD, bias=bias)
        results.append(bench.run([launch], y, columns)[16 - first : 32 - first])
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_rmsnorm_and_swiglu(bench: Bench) -> None:
    x, weights = normal(3, 160), normal(160, seed=3)
    y = bench.activations(np.zeros((3, 160), np.float32))
    got = bench.run([rmsnorm.dispatch(bench.activations(x), y, Norm(bench.put(weights), 160, 1e-5), 3)], y, 3)
    assert relative(got, rmsnorm.reference(x.astype(np.float64), weights.astype(np.float64), 1e-5)) < 2e-6
    half = bench.activations(np.zeros((3, 96), np.float32))
    joined = bench.run([swiglu.dispatch(bench.activations(x), half, 80, 3)], half, 3)[:, :80]
    assert relative(joined, swiglu.reference(x.astype(np.float64))) < 2e-6


@KINDS
def test_embedding_rows(bench: Bench, kind: TensorType) -> None:
    block, table = matrix(bench, kind, 40, 256)
    h = bench.activations(np.zeros((3, 256), np.float32))
    records = bench.put(record_array([Run([39, 0, 7], 0)], 3, 64))
    got = bench.run([embed.dispatch(block, records, h, 3)], h, 3)
    assert relative(got, table[[39, 0, 7]]) < 2e-7


@pytest.mark.parametrize("vocab", [70, 1088, 49_152])
def test_selection_finds_the_best_64(bench: Bench, vocab: int) -> None:
    logits = (normal(2, vocab) * 4).round(1)
    stride = -(-vocab // 32) * 32
    rows = bench.activations(np.pad(logits, ((0, 0), (0, stride - vocab))))
    selection, records = make_selection(bench, vocab, 2), bench.put(record_array([Run([5, 6], 3)], 2, 64))
    launches = select.best_dispatches(rows, records, selection, vocab, 2, advance=False)
    launches += select.collect_dispatches(rows, selection, vocab, 2)
    result = Activations(selection.result, select.SPACE_WORDS)
    blocks = bench.run(launches, result, 2).view(np.uint32)
    for block, row in zip(blocks, logits, strict=True):
        count = select.read_best(block).count
        found = select.read_candidates(block, row if count > select.ROOM else None)
        order = np.lexsort((np.arange(vocab), -row))[:64]
        assert found.ids.tolist() == order.tolist()
        exact = np.log(np.exp(row.astype(np.float64) - row.max()).sum()) + row.max()
        assert abs(found.log_sum_exp - exact) < 1e-4
        assert found.non_finite == 0


def test_selection_counts_what_is_not_finite(bench: Bench) -> None:
    row = normal(1, 4096)
    row[0, [3, 70, 4095]] = np.nan, np.inf, -np.inf
    selection, records = make_selection(bench, 4096, 1), bench.put(record_array([Run([5], 3)], 1, 64))
    launches = select.best_dispatches(bench.activations(row), records, selection, 4096, 1, advance=False)
    best = select.read_best(
        bench.run(launches, Activations(selection.result, select.SPACE_WORDS), 1)[0].view(np.uint32)
    )
    assert best.non_finite == 3
    assert best.token == int(np.argmax(np.where(np.isfinite(row[0]), row[0], -9)))


def test_advance_makes_the_next_record_and_stops(bench: Bench) -> None:
    row = normal(2, 256)
    row[0, 9], row[1, 77] = 50, 50
    selection, records = make_selection(bench, 256, 2, stops=[77]), bench.put(record_array([Run([5, 6], 3)], 2, 64))
    launches = select.best_dispatches(bench.activations(row), records, selection, 256, 2, advance=True)
    after = bench.run(launches, Activations(records, 8), 2).view(np.uint32)
    assert after[:, [0, 1, 4]].tolist() == [[9, 4, 1], [77, 5, 0]]


def make_selection(bench: Bench, vocab: int, columns: int, stops: list[int] | None = None) -> select.Selection:
    scans = select.scans_of(vocab) * columns
    words = np.zeros(MAX_STOPS + 1, np.uint32)
    words[: len(stops or []) + 1] = [len(stops or []), *(stops or [])]
    return select.Selection(
        bench.put(np.zeros(scans * 8, np.uint32)),
        bench.put(np.zeros(scans * 64, np.uint32)),
        bench.put(np.zeros(columns * select.SPACE_WORDS, np.uint32)),
        bench.put(words),
    )


@pytest.mark.parametrize("count", [1, 65_535, 65_536, 248_320])
def test_grids_stay_within_the_limit(count: int) -> None:
    x, y, _ = spread(count)
    assert x <= 65_535
    assert count <= x * y < count + x
