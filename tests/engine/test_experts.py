"""Mixtures of experts against their float64 reference, and the bits of a column whatever runs beside it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from app.core.errors import ModelError
from app.engine.gguf.types import TensorType
from app.engine.memory import Allocator, Meter, Slice
from app.engine.ops import experts, matmul, matvec, swiglu
from app.engine.ops.experts import ExpertShape, Groups
from app.engine.ops.matmul import Placement
from app.engine.ops.matvec import Activations, Norm, Tuning
from app.engine.placement import Epilogue
from app.engine.program import Dispatch
from app.engine.selftest import Bench, random_matrix
from app.engine.weights.matrix import Block
from app.engine.weights.reference import dequantise

GPU = Tuning(lanes=32, grain=2, teams=4, rows=2, columns=8, fused_norm=True)
SOFTWARE = Tuning(lanes=8, grain=4, teams=4, rows=8, columns=1, fused_norm=False)
TUNINGS = pytest.mark.parametrize("tuning", [GPU, SOFTWARE], ids=["gpu", "software"])
PLACEMENTS = pytest.mark.parametrize("placement", list(Placement), ids=lambda p: p.name.lower())

SMALL = ExpertShape(count=8, used=3, inner=32, shared_inner=48, normalised=True)
MANY = ExpertShape(count=256, used=8, inner=64, shared_inner=0, normalised=False)
ALL = ExpertShape(count=5, used=5, inner=33, shared_inner=0, normalised=True)
LARGE_BLOCKS = ExpertShape(count=4, used=2, inner=256, shared_inner=0, normalised=True)
CASES: list[tuple[ExpertShape, int, TensorType]] = [
    (SMALL, 64, TensorType.F32),
    (SMALL, 64, TensorType.Q8_0),
    (SMALL, 96, TensorType.Q4_0),
    (ALL, 70, TensorType.F32),
    (MANY, 64, TensorType.Q4_0),
    (LARGE_BLOCKS, 256, TensorType.Q4_K),
]


def named(value: object) -> str:
    if isinstance(value, ExpertShape):
        return f"{value.used}of{value.count}"
    if isinstance(value, Tuning):
        return "gpu" if value == GPU else "software"
    return value.name.lower() if isinstance(value, TensorType | Placement) else str(value)


MIXTURES = pytest.mark.parametrize(("shape", "hidden", "kind"), CASES, ids=named)


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def normal(*shape: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def padded(values: np.ndarray) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, -values.shape[1] % 32)))


@dataclass(frozen=True)
class Stack:
    """Weights [count, rows, columns] and their blocks on the GPU."""

    weights: np.ndarray
    blocks: tuple[Block, ...]
    rows: int


def stack(bench: Bench, kind: TensorType, count: int, rows: int, columns: int, *, seed: int, cut: int = 0) -> Stack:
    """``cut`` is the first expert of a second block."""
    raw = random_matrix(kind, count * rows, columns, seed)
    weights = dequantise(kind, raw, count * rows, columns).astype(np.float64)
    split, per_expert = raw.reshape(-1), raw.size // count
    blocks = []
    for lo, hi in ((0, cut), (cut, count)) if cut else ((0, count),):
        block = bench.block(kind, split[lo * per_expert : hi * per_expert], (hi - lo) * rows, columns)
        blocks.append(replace(block, first=lo * rows))
    return Stack(weights.reshape(count, rows, columns), tuple(blocks), rows)


def routes_of(bench: Bench, shape: ExpertShape, ids: np.ndarray, weights: np.ndarray) -> Slice:
    words = np.zeros((len(ids), shape.slots, 2), np.uint32)
    words[:, : ids.shape[1], 0] = ids
    words[:, : ids.shape[1], 1] = weights.astype(np.float32).view(np.uint32)
    return bench.put(words)


def random_routes(shape: ExpertShape, columns: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    logits = np.random.default_rng(seed).normal(size=(columns, shape.logits))
    ids, weights = experts.route_reference(logits, shape)
    return ids, weights.astype(np.float32).astype(np.float64)


def empty(bench: Bench, rows: int, columns: int) -> Activations:
    return bench.activations(padded(np.zeros((rows, columns), np.float32)))


# --- routing ---


def route(bench: Bench, logits: np.ndarray, shape: ExpertShape) -> tuple[np.ndarray, np.ndarray]:
    columns = len(logits)
    routes = bench.put(np.full((columns, shape.slots, 2), 0x7FFFFFFF, np.uint32))
    launch = experts.route_dispatch(bench.activations(padded(logits)), routes, shape, columns)
    pairs = bench.run([launch], Activations(routes, 2 * shape.slots), columns).reshape(columns, shape.slots, 2)
    return pairs[:, :, 0].view(np.uint32), pairs[:, :, 1]


@pytest.mark.parametrize("normalised", [True, False], ids=["normalised", "raw"])
@pytest.mark.parametrize(
    ("count", "used", "shared"), [(8, 3, 48), (1, 1, 0), (7, 7, 0), (256, 8, 64), (513, 10, 32), (1024, 16, 0)]
)
def test_routes(bench: Bench, count: int, used: int, shared: int, normalised: bool) -> None:
    shape = ExpertShape(count, used, 32, shared, normalised)
    logits = normal(3, shape.logits) * 3
    ids, weights = route(bench, logits, shape)
    expected_ids, expected = experts.route_reference(logits.astype(np.float64), shape)
    assert ids.tolist() == expected_ids.tolist()
    assert relative(weights, expected) < 2e-6
    if normalised:
        assert np.abs(weights[:, :used].sum(axis=1) - 1).max() < 1e-6


def test_equal_logits_go_to_the_smaller_id(bench: Bench) -> None:
    shape = ExpertShape(130, 6, 32, 0, True)
    logits = np.zeros((4, 130), np.float32)
    logits[0] = -0.0
    logits[0, 100] = 0.0
    logits[1, [3, 77, 128, 129]] = 2
    logits[1, 50:] += 1
    logits[2] = np.random.default_rng(3).integers(0, 3, 130)
    logits[3] = -1e30
    logits[3, [129, 7]] = -1e29
    ids, weights = route(bench, logits, shape)
    assert ids[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert ids[1].tolist() == [77, 128, 129, 3, 50, 51]
    assert ids.tolist() == experts.route_reference(logits.astype(np.float64), shape)[0].tolist()
    assert np.allclose(weights[0], 1 / 6)


def test_what_is_not_a_number_comes_last(bench: Bench) -> None:
    shape = ExpertShape(6, 4, 32, 0, True)
    logits = np.array([[np.nan, 1, -np.inf, np.nan, 2, -5], [np.nan, -np.nan, np.nan, 1, np.nan, np.nan]], np.float32)
    ids, weights = route(bench, logits, shape)
    assert ids.tolist() == [[4, 1, 5, 2], [3, 0, 1, 2]]
    assert weights[0, 3] == 0
    assert np.isnan(weights[1]).any()


@pytest.mark.parametrize(
    ("count", "used", "inner"), [(1025, 8, 32), (0, 1, 32), (8, 0, 32), (32, 17, 32), (4, 5, 32), (4, 2, 0)]
)
def test_mixtures_that_cannot_be_laid_out_are_refused(count: int, used: int, inner: int) -> None:
    with pytest.raises(ModelError):
        experts.check_shape(ExpertShape(count, used, inner, 0, True))


def test_the_largest_mixture_is_accepted() -> None:
    experts.check_shape(ExpertShape(1024, 16, 1, 0, True))


@dataclass(frozen=True)
class Layer:
    """A mixture's layer, its input and what it should add to the residual stream."""

    shape: ExpertShape
    hidden: int
    gate_up: Stack
    down: Stack

    def expected(self, x: np.ndarray, ids: np.ndarray, weights: np.ndarray) -> np.ndarray:
        used = slice(0, self.shape.used)
        wide = x.astype(np.float64)
        return experts.mixture_reference(wide, self.gate_up.weights, self.down.weights, ids[:, used], weights[:, used])

    def step(
        self, bench: Bench, x: Activations, h: Activations, routes: Slice, columns: int, tuning: Tuning,
        norm: Norm | None = None, *, apart: bool = False,
    ) -> list[Dispatch]:  # fmt: skip
        shape, pairs = self.shape, columns * self.shape.used
        inner, outputs = empty(bench, pairs, shape.inner), empty(bench, pairs, self.hidden)
        common = (routes, shape, columns, tuning)
        gate_up = [
            experts.step_matvec(b, self.gate_up.rows, x, inner, *common, epilogue=Epilogue.SWIGLU, norm=norm)
            for b in self.gate_up.blocks
        ]
        return gate_up + experts.step_down(self.down.blocks, inner, h, *common, outputs, apart=apart)

    def prompt(
        self, bench: Bench, x: Activations, h: Activations, routes: Slice, columns: int, placement: Placement,
        shared: Activations | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        shape = self.shape
        buffers = experts.make_expert_buffers(bench.allocator, shape, self.hidden, columns)
        groups, rows = buffers.groups, 2 * shape.inner
        common = (groups, shape, columns, placement)
        gate_up = [experts.grouped_matmul(b, rows, x, buffers.gate_up, *common) for b in self.gate_up.blocks]
        down = [
            experts.grouped_matmul(b, self.hidden, buffers.inner, buffers.outputs, *common, per_slot=True)
            for b in self.down.blocks
        ]
        return [
            experts.sort_dispatch(routes, groups, shape, columns, placement.columns),
            *gate_up,
            swiglu.dispatch(buffers.gate_up, buffers.inner, shape.inner, columns * shape.used),
            *down,
            experts.combine_dispatch(buffers.outputs, h, routes, shape, self.hidden, columns, shared),
        ]


def layer_of(bench: Bench, shape: ExpertShape, hidden: int, kind: TensorType, cut: int = 0) -> Layer:
    gate_up = stack(bench, kind, shape.count, 2 * shape.inner, hidden, seed=1, cut=cut)
    return Layer(shape, hidden, gate_up, stack(bench, kind, shape.count, hidden, shape.inner, seed=2, cut=cut))


# --- step columns ---


@pytest.mark.parametrize(
    ("shape", "hidden", "kind", "tuning"),
    [(*case, GPU) for case in CASES] + [(*CASES[1], SOFTWARE), (*CASES[4], SOFTWARE)],
    ids=named,
)
def test_step_experts(bench: Bench, shape: ExpertShape, hidden: int, kind: TensorType, tuning: Tuning) -> None:
    columns = 2
    layer = layer_of(bench, shape, hidden, kind)
    x, scale = normal(columns, hidden), normal(hidden, seed=5) * 0.2
    wide = x.astype(np.float64)
    ids, weights = random_routes(shape, columns)
    expected = layer.expected(wide / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + 1e-5) * scale, ids, weights)
    base = normal(columns, hidden, seed=3) * np.float32(expected.std())
    h, norm = bench.activations(padded(base)), Norm(bench.put(padded(scale[None])[0]), hidden, 1e-5)
    routes = routes_of(bench, shape, ids, weights)
    launches = layer.step(bench, bench.activations(padded(x)), h, routes, columns, tuning, norm)
    got = bench.run(launches, h, columns)
    assert len(launches) == 2
    assert relative(got[:, :hidden] - base, expected) < 1e-5
    assert (got[:, hidden:] == 0).all()


@TUNINGS
def test_gate_and_up_of_different_types(bench: Bench, tuning: Tuning) -> None:
    shape, columns, hidden = SMALL, 3, 64
    gate = stack(bench, TensorType.Q8_0, shape.count, shape.inner, hidden, seed=1)
    up = stack(bench, TensorType.Q4_0, shape.count, shape.inner, hidden, seed=2, cut=3)
    x = normal(columns, hidden)
    ids, weights = random_routes(shape, columns)
    routes, source = routes_of(bench, shape, ids, weights), bench.activations(x)
    pairs = columns * shape.used
    both, inner = empty(bench, pairs, 2 * shape.inner), empty(bench, pairs, shape.inner)
    second = replace(both, first=shape.inner)
    launches = [
        experts.step_matvec(block, part.rows, source, y, routes, shape, columns, tuning)
        for part, y in ((gate, both), (up, second))
        for block in part.blocks
    ]
    got = bench.run([*launches, swiglu.dispatch(both, inner, shape.inner, pairs)], inner, pairs)
    joined = np.concatenate([gate.weights, up.weights], axis=1)
    rows = [swiglu.reference(x[[c]].astype(np.float64) @ joined[e].T)[0] for c in range(columns) for e in ids[c, :3]]
    assert relative(got, np.array(rows)) < 5e-6


@TUNINGS
def test_step_columns_have_the_same_bits_at_every_width_and_cut(bench: Bench, tuning: Tuning) -> None:
    shape, hidden = SMALL, 96
    x, base = normal(16, hidden), normal(16, hidden, seed=4)
    ids, weights = random_routes(shape, 16)
    results = []
    for width, cut, apart in [(1, 0, False), (2, 0, True), (4, 5, True), (8, 0, False), (16, 1, False), (16, 0, False)]:
        layer = layer_of(bench, shape, hidden, TensorType.Q4_0, cut)
        routes, h = routes_of(bench, shape, ids[:width], weights[:width]), bench.activations(base[:width])
        source = bench.activations(x[:width])
        results.append(bench.run(layer.step(bench, source, h, routes, width, tuning, apart=apart), h, width))
    assert not np.array_equal(results[-1], base)
    assert all(np.array_equal(results[-1][: len(r)], r) for r in results)


@TUNINGS
def test_the_shared_expert_is_weighted(bench: Bench, tuning: Tuning) -> None:
    shape, rows, columns = SMALL, 70, 4
    raw = random_matrix(TensorType.Q8_0, rows, 64, 1)
    weights = dequantise(TensorType.Q8_0, raw, rows, 64).astype(np.float64)
    x, base = normal(columns, 64), normal(columns, 96, seed=3)
    ids, shares = random_routes(shape, columns)
    routes = routes_of(bench, shape, ids, shares)
    h = bench.activations(base)
    launch = matvec.dispatch(
        bench.block(TensorType.Q8_0, raw, rows, 64), bench.activations(x), h, columns, tuning,
        epilogue=Epilogue.WEIGHTED_ADD, weights=experts.shared_weights(routes, shape),
    )  # fmt: skip
    got = bench.run([launch], h, columns)
    expected = shares[:, [shape.used]] * matvec.reference(weights, x.astype(np.float64))
    assert relative(got[:, :rows] - base[:, :rows], expected) < 2e-6
    assert np.array_equal(got[:, rows:], base[:, rows:])


# --- prompt columns ---


def sort(bench: Bench, ids: np.ndarray, shape: ExpertShape, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    columns = len(ids)
    buffers = experts.make_expert_buffers(bench.allocator, shape, 32, columns)
    routes = routes_of(bench, shape, ids, np.ones(ids.shape))
    launch = experts.sort_dispatch(routes, buffers.groups, shape, columns, placement.columns)
    tiles = columns * shape.used // placement.columns + shape.count
    order = bench.run([launch], Activations(buffers.groups.pairs, columns * shape.used), 1)
    table = bench.run([launch], Activations(buffers.groups.tiles, 4), tiles)
    return order.view(np.uint32)[0], table.view(np.uint32)


def spread_routes(shape: ExpertShape, columns: int, how: str) -> np.ndarray:
    if how == "random":
        return random_routes(shape, columns)[0][:, : shape.used]
    ids = np.tile(np.arange(shape.used), (columns, 1))
    return ids + (shape.count - shape.used if how == "all to the last" else 0)


@pytest.mark.parametrize("how", ["random", "all to the first", "all to the last"])
@pytest.mark.parametrize("placement", [Placement.ROWWISE, Placement.MEDIUM, Placement.WIDE], ids=lambda p: p.name)
@pytest.mark.parametrize(("shape", "columns"), [(SMALL, 1), (SMALL, 43), (ALL, 16), (MANY, 70)])
def test_pairs_are_grouped_by_expert(
    bench: Bench, shape: ExpertShape, columns: int, placement: Placement, how: str
) -> None:
    ids = spread_routes(shape, columns, how)
    order, tiles = sort(bench, ids, shape, placement)
    flat = ids.reshape(-1)
    assert order.tolist() == np.argsort(flat, kind="stable").tolist()
    covered = []
    for expert, first, count, _ in tiles[tiles[:, 2] > 0].tolist():
        assert count <= placement.columns
        assert (flat[order[first : first + count]] == expert).all()
        covered += range(first, first + count)
    assert covered == list(range(flat.size))
    full = sum(-(-n // placement.columns) for n in np.bincount(flat) if n)
    assert (tiles[:, 2] > 0).sum() == full


@PLACEMENTS
def test_a_grouped_row_has_the_bits_of_the_plain_matmul(bench: Bench, placement: Placement) -> None:
    shape, columns, hidden, rows = SMALL, 70, 96, 71
    x = normal(columns, hidden)
    ids = random_routes(shape, columns)[0]
    part = stack(bench, TensorType.Q4_0, shape.count, rows, hidden, seed=1, cut=5)
    y = bench.activations(np.full((columns * 3, 96), np.nan))
    buffers = experts.make_expert_buffers(bench.allocator, shape, hidden, columns)
    routes, source = routes_of(bench, shape, ids, np.ones(ids.shape)), bench.activations(x)
    launches = [experts.sort_dispatch(routes, buffers.groups, shape, columns, placement.columns)]
    launches += [
        experts.grouped_matmul(block, rows, source, y, buffers.groups, shape, columns, placement)
        for block in part.blocks
    ]
    got = bench.run(launches, y, columns * 3)
    assert np.isnan(got[:, rows:]).all()
    raw = random_matrix(TensorType.Q4_0, shape.count * rows, hidden, 1).reshape(shape.count, -1)
    for expert in range(shape.count):
        chosen = np.flatnonzero(ids[:, :3].reshape(-1) == expert)
        alone = bench.activations(np.zeros((128, 96), np.float32))
        gathered = np.zeros((128, hidden), np.float32)
        gathered[: len(chosen)] = x[chosen // 3]
        plain = bench.block(TensorType.Q4_0, raw[expert], rows, hidden)
        launch = matmul.dispatch(plain, bench.activations(gathered), alone, 128, Placement.ROWWISE)
        expected = bench.run([launch], alone, 128)[: len(chosen), :rows]
        assert np.array_equal(got[chosen, :rows], expected)


def read_prompt(
    bench: Bench, layer: Layer, x: np.ndarray, base: np.ndarray, routes: Slice, placement: Placement,
    shared: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    columns, h = len(x), bench.activations(padded(base))
    extra = None if shared is None else bench.activations(padded(shared))
    launches = layer.prompt(bench, bench.activations(padded(x)), h, routes, columns, placement, extra)
    return bench.run(launches, h, columns)[:, : layer.hidden]


@MIXTURES
def test_prompt_experts(bench: Bench, shape: ExpertShape, hidden: int, kind: TensorType) -> None:
    columns, layer = 24, layer_of(bench, shape, hidden, kind)
    x, shared = normal(columns, hidden) * 0.2, normal(columns, hidden, seed=4) if shape.shared_inner else None
    ids, weights = random_routes(shape, columns)
    expected = layer.expected(x, ids, weights)
    if shared is not None:
        expected += weights[:, [shape.used]] * shared
    base = normal(columns, hidden, seed=3) * np.float32(expected.std())
    got = read_prompt(bench, layer, x, base, routes_of(bench, shape, ids, weights), Placement.MEDIUM, shared)
    assert relative(got - base, expected) < 1e-5


def test_prompt_columns_have_the_same_bits_in_every_chunk_placement_and_cut(bench: Bench) -> None:
    shape, hidden, columns = SMALL, 64, 40
    x, base = normal(columns, hidden), normal(columns, hidden, seed=3)
    ids, weights = random_routes(shape, columns)
    ids[10:30, 0], ids[10:30, 1], ids[10:30, 2] = 6, 1, 7
    results = []
    for placement, chunk, cut in [
        (Placement.ROWWISE, 40, 0), (Placement.MEDIUM, 40, 0), (Placement.WIDE, 40, 3), (Placement.ROWWISE, 13, 7),
    ]:  # fmt: skip
        layer = layer_of(bench, shape, hidden, TensorType.Q8_0, cut)
        parts = [
            read_prompt(bench, layer, x[part], base[part], routes_of(bench, shape, ids[part], weights[part]), placement)
            for part in (slice(lo, lo + chunk) for lo in range(0, columns, chunk))
        ]
        results.append(np.concatenate(parts))
    assert not np.array_equal(results[0], base)
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("how", ["all to the first", "all to the last"])
def test_one_group_of_experts_takes_all_columns(bench: Bench, how: str) -> None:
    shape, hidden, columns = SMALL, 64, 37
    layer = layer_of(bench, shape, hidden, TensorType.F32)
    x, base = normal(columns, hidden), normal(columns, hidden, seed=3)
    ids, weights = spread_routes(shape, columns, how), np.full((columns, 3), 0.25)
    got = read_prompt(bench, layer, x, base, routes_of(bench, shape, ids, weights), Placement.MEDIUM)
    assert relative(got - base, layer.expected(x, ids, weights)) < 1e-5


def test_both_classes_agree(bench: Bench) -> None:
    shape, hidden, columns = LARGE_BLOCKS, 256, 4
    layer = layer_of(bench, shape, hidden, TensorType.Q4_K)
    x, base = normal(columns, hidden) * 0.2, normal(columns, hidden, seed=3)
    ids, weights = random_routes(shape, columns)
    routes, h = routes_of(bench, shape, ids, weights), bench.activations(base)
    step = bench.run(layer.step(bench, bench.activations(x), h, routes, columns, GPU), h, columns)
    assert relative(step - base, read_prompt(bench, layer, x, base, routes, Placement.ROWWISE) - base) < 1e-5


# --- placement and memory ---


def test_tiles_follow_the_pairs_an_expert_gets() -> None:
    few, many = replace(MANY, count=256), replace(MANY, count=16)
    assert experts.placement_for(few, 256, 48 << 10, software=False) is Placement.MEDIUM
    assert experts.placement_for(many, 256, 48 << 10, software=False) is Placement.WIDE
    assert experts.placement_for(many, 256, 16 << 10, software=False) is Placement.MEDIUM
    assert experts.placement_for(many, 256, 48 << 10, software=True) is Placement.ROWWISE


def test_buffers_take_what_was_announced(bench: Bench) -> None:
    meter = Meter()
    experts.make_expert_buffers(meter, SMALL, 64, 40)
    allocator = Allocator(bench.gpu, 1 << 24)
    buffers = experts.make_expert_buffers(allocator, SMALL, 64, 40)
    assert allocator.used == meter.by_purpose()["scratch"]
    assert isinstance(buffers.groups, Groups)
    assert buffers.gate_up.slice == buffers.outputs.slice
    assert buffers.outputs.slice.size >= 40 * 3 * max(buffers.gate_up.stride, buffers.outputs.stride) * 4
    allocator.free_all()
