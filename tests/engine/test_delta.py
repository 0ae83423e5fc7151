"""Gated DeltaNet against float64, and its state under replays, chunks and wrong drafts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from app.engine.memory import Slice
from app.engine.ops import delta, quantise
from app.engine.ops.delta import DeltaShape, DeltaState
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised
from app.engine.program import Dispatch
from app.engine.selftest import Bench
from app.engine.types import ColumnClass
from app.engine.workspace import Run, record_array

STEP, PROMPT = ColumnClass.STEP, ColumnClass.PROMPT
TINY = DeltaShape(key_heads=2, value_heads=6, size=16, taps=4, epsilon=1e-6)
REAL = DeltaShape(key_heads=2, value_heads=4, size=128, taps=4, epsilon=1e-6)
POSITIONS = 45


@dataclass
class Layer:
    """One layer with its own state, and the projections of 45 positions."""

    bench: Bench
    shape: DeltaShape
    state: DeltaState
    weights: Slice
    mixed: np.ndarray
    expected: np.ndarray
    matrix: np.ndarray
    shared: int = 48 << 10

    def run(
        self, position: int, count: int, kind: ColumnClass, *, replay: int = 0, sequence: int = 0, live: bool = True
    ) -> np.ndarray:
        return self.run_many([Run([0] * count, position, sequence, replay)], kind, live=live)

    def run_many(self, runs: list[Run], kind: ColumnClass, *, live: bool = True) -> np.ndarray:
        width = sum(len(r.ids) for r in runs)
        out = self.bench.activations(np.full((max(width, 1), self.shape.inner), np.nan))
        return self.bench.run(self.launches(runs, kind, out, live=live), out, max(width, 1))[:width]

    def launches(
        self, runs: list[Run], kind: ColumnClass, out: Activations | Quantised, *, live: bool = True
    ) -> list[Dispatch]:
        width = sum(len(r.ids) for r in runs)
        padded = max(width, 1)
        rows = [self.mixed[r.position : r.position + len(r.ids)] for r in runs]
        x = np.concatenate(rows) if width else self.mixed[:1]
        records = record_array(runs, padded, context=64)
        records[:, 4] *= live
        stride = -(-self.shape.rows // 4) * 4
        mixed = Activations(self.bench.put(np.pad(x, ((0, 0), (0, stride - x.shape[1]))).astype(np.float32)), stride)
        return delta.dispatches(
            self.bench.put(records), mixed, self.state, self.weights, out, self.shape, padded, kind, self.shared
        )

    def committed(self, sequence: int = 0) -> np.ndarray:
        size, heads = self.shape.size, self.shape.value_heads
        whole = Activations(self.state.matrix, self.state.matrix.size // 4)
        raw = self.bench.run([], whole, 1).reshape(-1, heads, size // 4, size, 4)[sequence]
        return raw.transpose(0, 1, 3, 2).reshape(heads, size, size)


def make(bench: Bench, shape: DeltaShape, sequences: int = 1) -> Layer:
    rng = np.random.default_rng(7)
    mixed = rng.normal(size=(POSITIONS, shape.rows)).astype(np.float32)
    taps = rng.normal(scale=0.5, size=(shape.channels, shape.taps)).astype(np.float32)
    a = -np.exp(rng.normal(size=shape.value_heads)).astype(np.float32)
    dt, norm = rng.normal(size=shape.value_heads).astype(np.float32), rng.normal(size=shape.size).astype(np.float32)
    args = (x.astype(np.float64) for x in (mixed, taps, a, dt, norm))
    expected, matrix = delta.reference(*args, shape)
    garbage = [np.full(n // 4, np.nan, np.float32) for n in delta.state_bytes(shape, sequences)]
    state = DeltaState(*(bench.put(g) for g in garbage))
    weights = bench.put(delta.joined_weights(taps, a, dt, norm))
    return Layer(bench, shape, state, weights, mixed, expected, matrix)


def test_less_workgroup_memory_moves_no_bit(bench: Bench) -> None:
    layer = make(bench, REAL)
    expected = layer.run(0, POSITIONS, PROMPT)
    layer.shared = 16 << 10
    assert np.array_equal(layer.run(0, POSITIONS, PROMPT), expected)


@pytest.mark.parametrize("kind", [STEP, PROMPT], ids=lambda k: k.value)
def test_outputs_rounded_on_the_way_have_the_bits_of_two_launches(bench: Bench, kind: ColumnClass) -> None:
    layer, runs, count = make(bench, REAL), [Run([0] * 16, 0)], 16
    assert delta.rounds(REAL, bench.gpu.caps)
    floats = bench.activations(layer.run_many(runs, kind))
    apart, joined = (quantise.make_quantised(bench.allocator, REAL.inner, count) for _ in range(2))
    two = [quantise.dispatch(floats, apart, count, bench.gpu.caps)]
    for part, words in (("values", REAL.inner // 4), ("scales", REAL.inner // 8)):
        pairs = [(two, apart), (layer.launches(runs, kind, joined), joined)]
        one, other = (bench.run(d, Activations(getattr(q, part), words), count).tobytes() for d, q in pairs)
        assert one == other


@pytest.fixture(params=[TINY, REAL], ids=["tiny", "real"])
def layer(request: pytest.FixtureRequest, bench: Bench) -> Layer:
    return make(bench, request.param)


@pytest.mark.parametrize("kind", [STEP, PROMPT], ids=lambda k: k.value)
def test_equals_float64_from_position_0_whatever_the_buffers_held(layer: Layer, kind: ColumnClass) -> None:
    count = 16 if kind is STEP else POSITIONS
    got = layer.run(0, count, kind)
    assert np.abs(got - layer.expected[:count]).max() <= 2e-5 * np.abs(layer.expected).max()
    if kind is PROMPT:
        assert np.abs(layer.committed() - layer.matrix).max() <= 2e-5 * np.abs(layer.matrix).max()


def test_one_by_one_together_and_as_a_prompt_have_the_same_bits(layer: Layer) -> None:
    prompt = layer.run(0, POSITIONS, PROMPT)
    state = layer.committed()
    steps = [layer.run(p, 1, STEP, replay=min(p, 1)) for p in range(POSITIONS)]
    layer.run(POSITIONS, 0, STEP, replay=1)
    assert np.array_equal(np.concatenate(steps), prompt)
    assert np.array_equal(layer.committed(), state)


def test_chunks_of_a_prompt_and_wide_steps_have_the_same_bits(layer: Layer) -> None:
    expected = layer.run(0, POSITIONS, PROMPT)
    parts = [layer.run(0, 1, PROMPT), layer.run(1, 6, PROMPT), layer.run(7, 13, STEP)]
    parts += [layer.run(20, 16, STEP, replay=13), layer.run(36, 9, PROMPT, replay=16)]
    assert np.array_equal(np.concatenate(parts), expected)


def test_rejected_columns_leave_no_trace(layer: Layer) -> None:
    expected = layer.run(0, POSITIONS, PROMPT)
    layer.run(0, 20, PROMPT)
    true = layer.mixed.copy()
    layer.mixed[23:36] = 3.0
    layer.run(20, 16, STEP)
    layer.mixed[:] = true
    assert np.array_equal(layer.run(23, 16, STEP, replay=3), expected[23:39])
    layer.run(23, 2, STEP)
    assert np.array_equal(layer.run(25, 4, STEP, replay=2), expected[25:29])


def test_a_step_that_is_not_live_writes_nothing(layer: Layer) -> None:
    expected = layer.run(0, POSITIONS, PROMPT)
    layer.run(0, 30, PROMPT)
    layer.run(30, 1, STEP)
    layer.run(31, 1, STEP, replay=1, live=False)
    layer.run(31, 0, STEP, replay=1)
    assert np.array_equal(layer.run(31, 2, STEP), expected[31:33])


def test_sequences_in_one_pass_have_the_bits_they_have_alone(bench: Bench) -> None:
    layer = make(bench, TINY, sequences=3)
    expected = layer.run(0, POSITIONS, PROMPT)
    for sequence, end in enumerate((5, 20, 33)):
        layer.run(0, end, PROMPT, sequence=sequence)
    first = layer.run_many([Run([0], 5, 0), Run([0], 20, 1), Run([0, 0], 33, 2)], STEP)
    assert np.array_equal(first, expected[[5, 20, 33, 34]])
    second = layer.run_many([Run([0, 0], 34, 2, 1), Run([0], 6, 0, 1)], STEP)
    assert np.array_equal(second, expected[[34, 35, 6]])
    assert np.array_equal(layer.run(21, 3, STEP, replay=1, sequence=1), expected[21:24])
