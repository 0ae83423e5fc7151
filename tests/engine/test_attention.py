"""Attention and rotation at odd shapes against their float64 references, and the rules on bits."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.errors import ModelError
from app.engine.memory import Slice, upload
from app.engine.ops import attention, rmsnorm, rope
from app.engine.ops.matvec import Activations
from app.engine.ops.rope import Cache, HeadShape
from app.engine.selftest import Bench
from app.engine.types import KvFormat

BASE = 10_000.0
BOUNDS = {KvFormat.F32: 2e-6, KvFormat.F16: 2e-3, KvFormat.INT8: 2e-2}
SMOLLM = HeadShape(9, 3, 64, 64, True, 1e-5)
CASES = [
    (SMOLLM, KvFormat.F32),
    (SMOLLM, KvFormat.F16),
    (SMOLLM, KvFormat.INT8),
    (HeadShape(4, 2, 32, 32, False, 1e-6), KvFormat.F16),
    (HeadShape(16, 1, 128, 64, False, 1e-6), KvFormat.F16),
    (HeadShape(2, 2, 256, 64, False, 1e-6), KvFormat.F32),
    (HeadShape(6, 2, 80, 80, False, 1e-6), KvFormat.F16),
    (HeadShape(2, 2, 32, 32, False, 1e-6, gated=True), KvFormat.INT8),
    (HeadShape(4, 2, 256, 64, False, 1e-6, gated=True), KvFormat.F16),
    (HeadShape(6, 1, 256, 64, False, 1e-6, gated=True), KvFormat.INT8),
    (HeadShape(16, 1, 64, 64, False, 1e-6, gated=True), KvFormat.F32),
]
"""Few enough for a machine that compiles every kernel anew: each takes llvmpipe a second or three."""
FORMS = {"software": None, "portable": attention.PORTABLE, "large": attention.LARGE}


def name(value: object) -> str:
    if isinstance(value, HeadShape):
        return f"{value.heads}x{value.kv_heads}x{value.size}{'-gated' if value.gated else ''}"
    return str(value.value if isinstance(value, KvFormat) else value)


EVERY_CASE = pytest.mark.parametrize(("shape", "kv"), CASES, ids=name)
PACKED_FORMATS = pytest.mark.parametrize("kv", [KvFormat.F16, KvFormat.INT8], ids=name)
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
BOTH_FORMS = pytest.mark.parametrize("form", ["software", "portable"])
BOTH_ORDERS = pytest.mark.parametrize("threads", [attention.THREADS, attention.SOFTWARE_THREADS])


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def normal(*shape: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def put_zeros(bench: Bench, size: int) -> Slice:
    return bench.put(np.zeros(-(-size // 4), np.uint32))


def empty_cache(bench: Bench, shape: HeadShape, rows: int, kv: KvFormat) -> Cache:
    keys, values = (put_zeros(bench, rope.cache_bytes(shape, rows, kv)) for _ in range(2))
    scales = put_zeros(bench, rope.scale_bytes(shape, rows)) if kv is KvFormat.INT8 else None
    return Cache(keys, values, kv, scales)


def records_at(bench: Bench, position: int, columns: int, kv_row: int = 0, padding: int = 0) -> Slice:
    """Live columns from ``position`` on: {token, position, KV row, state, live, flags, -, -}; then dead ones."""
    words = np.zeros((columns + padding, 8), np.uint32)
    words[:columns, 1] = np.arange(position, position + columns)
    words[:columns, 2], words[:columns, 4] = kv_row, 1
    return bench.put(words)


def expected(shape: HeadShape, rows: np.ndarray, position: int) -> np.ndarray:
    """[heads * size] of the column at ``position``; rows are the qkv columns from position 0, not yet turned."""
    rotating = shape.heads + shape.kv_heads
    heads = rows[: position + 1].astype(np.float64).reshape(position + 1, -1, shape.size)
    turned = np.stack([rope.reference(h[:rotating], p, shape, BASE) for p, h in enumerate(heads)])
    values, gate = heads[:, rotating : rotating + shape.kv_heads], heads[-1, rotating + shape.kv_heads :]
    keys = turned[:, shape.heads :]
    return attention.reference(turned[-1, : shape.heads], keys, values, gate if shape.gated else None).reshape(-1)


class Filled:
    """A cache with ``seen`` rows from ``kv_row`` on and the turned qkv columns that filled it."""

    def __init__(self, bench: Bench, shape: HeadShape, kv: KvFormat, seen: int, kv_row: int = 0) -> None:
        self.bench, self.shape, self.seen, self.kv_row = bench, shape, seen, kv_row
        self.records: Slice | None = None
        self.rows = normal(seen, shape.qkv_size)
        self.cache = empty_cache(bench, shape, kv_row + seen, kv)
        table = bench.put(rope.angles(shape, BASE, seen, None))
        qkv = bench.activations(self.rows)
        launch = rope.dispatch(records_at(bench, 0, seen, kv_row), qkv, self.cache, table, shape, seen)
        self.turned = bench.run([launch], qkv, seen)

    @classmethod
    def over(cls, bench: Bench, shape: HeadShape, cache: Cache, turned: np.ndarray, records: Slice) -> Filled:
        """Columns of one's own over a cache of one's own."""
        made = cls.__new__(cls)
        made.bench, made.shape, made.seen, made.kv_row = bench, shape, len(turned), 0
        made.cache, made.turned, made.records = cache, turned, records
        return made

    def _records(self, position: int, columns: int, padding: int = 0) -> Slice:
        return self.records or records_at(self.bench, position, columns, self.kv_row, padding)

    def _out(self, columns: int) -> Activations:
        return self.bench.activations(np.full((columns, self.shape.heads * self.shape.size), np.nan))

    def step(self, position: int, columns: int, threads: int, splits: int | None = None) -> np.ndarray:
        """Outputs of the step columns from ``position`` on."""
        splits = splits or attention.splits_within(self.seen)
        out = self._out(columns)
        partial, state = (put_zeros(self.bench, n) for n in attention.partial_bytes(self.shape, columns, splits))
        qkv = self.bench.activations(self.turned[position : position + columns])
        records = self._records(position, columns)
        launches = attention.split_dispatches(
            records, qkv, self.cache, partial, state, out, self.shape, columns, splits, threads
        )
        return self.bench.run(launches, out, columns)

    def prompt(self, position: int, columns: int, form: str, padding: int = 0) -> np.ndarray:
        """Outputs of the prompt columns from ``position`` on, ``padding`` dead columns after them."""
        width = columns + padding
        out = self._out(width)
        qkv = self.bench.activations(np.pad(self.turned[position : position + columns], ((0, padding), (0, 0))))
        records = self._records(position, columns, padding)
        launch = attention.tile_dispatch(records, qkv, self.cache, out, self.shape, width, FORMS[form])
        return self.bench.run([launch], out, width)[:columns]


@EVERY_CASE
@BOTH_ORDERS
def test_step_columns(bench: Bench, shape: HeadShape, kv: KvFormat, threads: int) -> None:
    filled = Filled(bench, shape, kv, 150)
    got = filled.step(0, 150, threads)
    for position in (0, 63, 64, 149):
        assert relative(got[position], expected(shape, filled.rows, position)) < BOUNDS[kv]


@EVERY_CASE
@BOTH_FORMS
def test_prompt_columns(bench: Bench, shape: HeadShape, kv: KvFormat, form: str) -> None:
    if form == "software" and shape.size > 64:
        pytest.skip("larger heads have only tiles")
    filled = Filled(bench, shape, kv, 150)
    got = filled.prompt(0, 150, form)
    for position in (0, 63, 64, 149):
        assert relative(got[position], expected(shape, filled.rows, position)) < BOUNDS[kv]


BITS = HeadShape(6, 2, 64, 32, False, 1e-6, gated=True)


@PACKED_FORMATS
@BOTH_ORDERS
def test_a_step_column_has_the_same_bits_at_every_width_and_bucket(bench: Bench, kv: KvFormat, threads: int) -> None:
    filled = Filled(bench, BITS, kv, 200, kv_row=40)
    alone = filled.step(130, 1, threads)[0]
    for first, columns, splits in [(130, 2, 4), (128, 3, 16), (115, 16, 4), (130, 16, 16)]:
        assert np.array_equal(filled.step(first, columns, threads, splits)[130 - first], alone)


@PACKED_FORMATS
@BOTH_FORMS
def test_a_prompt_column_has_the_same_bits_in_every_chunk(bench: Bench, kv: KvFormat, form: str) -> None:
    seen = 256
    filled = Filled(bench, BITS, kv, seen, kv_row=7)
    whole = filled.prompt(0, seen, form)
    assert np.isfinite(whole).all()
    for chunk in (16, 37, 64):
        for first in (0, chunk, seen // chunk * chunk - chunk):
            assert np.array_equal(filled.prompt(first, chunk, form), whole[first : first + chunk])
    for position in (0, 1, 63, 64, 200, 255):
        assert np.array_equal(filled.prompt(position, 1, form, padding=15), whole[position : position + 1])


@PACKED_FORMATS
def test_a_prompt_column_has_the_same_bits_in_either_tile(bench: Bench, kv: KvFormat) -> None:
    filled = Filled(bench, BITS, kv, 100)
    assert np.array_equal(filled.prompt(0, 100, "portable"), filled.prompt(0, 100, "large"))


@EVERY_FORM
def test_keys_after_a_column_add_exactly_nothing(bench: Bench, form: str) -> None:
    """Stale rows hold what would win any maximum and spoil any sum."""
    filled = Filled(bench, BITS, KvFormat.F32, 100)
    before = filled.prompt(32, 5, form)
    size = BITS.kv_size
    for buffer, value in ((filled.cache.keys, 1e30), (filled.cache.values, np.nan)):
        upload(
            bench.gpu,
            Slice(buffer.buffer, 37 * size * 4, 63 * size * 4, buffer.owner),
            np.full(63 * size, value, np.float32),
        )
    assert np.array_equal(filled.prompt(32, 5, form), before)


def test_int8_rows_are_the_rounded_keys_and_values(bench: Bench) -> None:
    shape = HeadShape(2, 2, 64, 32, False, 1e-6)
    rows = normal(5, shape.qkv_size) * np.float32(3)
    rows[2, 3 * 64 : 3 * 64 + 32] = 0
    rows[3, 5 * 64 : 6 * 64] = 0
    cache = empty_cache(bench, shape, 5, KvFormat.INT8)
    table = bench.put(rope.angles(shape, BASE, 5, None))
    launch = rope.dispatch(records_at(bench, 0, 5), bench.activations(rows), cache, table, shape, 5)
    assert cache.scales
    scales = bench.run([launch], Activations(cache.scales, 8), 5).reshape(5, 2, 2, 2)
    heads = rows.astype(np.float64).reshape(5, 6, 64)
    turned = np.stack([rope.reference(h[2:4], p, shape, BASE) for p, h in enumerate(heads)])
    for side, (buffer, exact) in enumerate(((cache.keys, turned), (cache.values, heads[:, 4:]))):
        words = bench.run([launch], Activations(buffer, 32), 5).reshape(5, 2, 16)
        steps = words.view(np.int8).reshape(5, 2, 2, 32)
        kept = (steps * scales[:, :, side, :, None].astype(np.float64)).reshape(5, 2, 64)
        step = np.abs(exact).max() / 127
        assert np.abs(kept - rope.quantise(exact)).max() < 1.01 * step
        assert (np.abs(kept - rope.quantise(exact)) > 1e-5).mean() < 0.01
        assert np.abs(steps).max() == 127
    assert scales[3, 1, 1].max() == 0
    assert np.isfinite(scales).all()


def test_the_current_token_is_read_back_rounded(bench: Bench) -> None:
    """A lone column's output is its own value as the cache keeps it."""
    shape = HeadShape(1, 1, 32, 32, False, 1e-6)
    for kv, kept in ((KvFormat.F16, lambda v: v.astype(np.float16)), (KvFormat.INT8, rope.quantise)):
        filled = Filled(bench, shape, kv, 1)
        value = kept(filled.rows[:, 64:].astype(np.float64))
        assert relative(filled.step(0, 1, attention.THREADS), value) < 1e-6
        for form in FORMS:
            assert relative(filled.prompt(0, 1, form), value) < 1e-6


def test_sizes_of_caches() -> None:
    shape = HeadShape(24, 4, 256, 64, False, 1e-6, gated=True)
    layer = 2 * rope.cache_bytes(shape, 1, KvFormat.INT8) + rope.scale_bytes(shape, 1)
    assert 16 * layer == 36_864
    assert 16 * 2 * rope.cache_bytes(shape, 1, KvFormat.F16) == 65_536


def test_int8_refuses_heads_that_are_no_multiple_of_32() -> None:
    shape = HeadShape(6, 2, 80, 80, False, 1e-6)
    rope.check_cache(shape, KvFormat.F16)
    with pytest.raises(ModelError, match="int8 caches need"):
        rope.check_cache(shape, KvFormat.INT8)


def test_tiles_fit_the_memory_they_are_chosen_for() -> None:
    shape = HeadShape(16, 8, 128, 128, False, 1e-6)
    assert attention.PORTABLE.shared == 16 << 10
    assert attention.tile_for(shape, 1024, 48 << 10) is attention.LARGE
    assert attention.tile_for(shape, 256, 48 << 10) is attention.PORTABLE
    assert attention.tile_for(shape, 1024, 32 << 10) is attention.LARGE
    assert attention.tile_for(shape, 1024, 31 << 10) is attention.PORTABLE


def test_the_form_fits_the_adapter(bench: Bench) -> None:
    filled = Filled(bench, BITS, KvFormat.F32, 20)
    forms = {
        attention.whole_dispatch(
            filled._records(0, 20), bench.activations(filled.turned), filled.cache, filled._out(20), BITS, 20, threads
        ).kernel.source.count("workgroupBarrier")
        for threads in (attention.SOFTWARE_THREADS, attention.THREADS)
    }
    assert min(forms) == 0 < max(forms)


LONG = 131_072
DEPTHS = 10


@PACKED_FORMATS
def test_one_key_in_a_long_context_is_found_at_every_depth(bench: Bench, kv: KvFormat) -> None:
    """A query meets one large key among 131,071 others."""
    shape = HeadShape(1, 1, 64, 64, False, 1e-6)
    rng = np.random.default_rng(8)
    keys, values = (rng.normal(size=(LONG, 64)).astype(np.float32) for _ in range(2))
    depths = np.linspace(0, LONG - 1, DEPTHS).astype(int)
    targets = np.linalg.qr(rng.normal(size=(64, DEPTHS)))[0].T
    keys[depths] = 14 * targets
    cache, kept_keys, kept_values = long_cache(bench, keys, values, kv)
    qkv = np.zeros((DEPTHS, shape.qkv_size), np.float32)
    qkv[:, :64] = 8 * targets
    words = np.zeros((DEPTHS, 8), np.uint32)
    words[:, 1], words[:, 4] = LONG - 1, 1
    filled = Filled.over(bench, shape, cache, qkv, bench.put(words))
    wanted = np.stack(
        [attention.reference(q[None, :64], kept_keys[:, None], kept_values[:, None])[0] for q in qkv.astype(np.float64)]
    )
    threads, form = (
        (attention.SOFTWARE_THREADS, "software") if bench.gpu.caps.software else (attention.THREADS, "large")
    )
    for got in (filled.step(0, DEPTHS, threads, 64), filled.prompt(0, DEPTHS, form)):
        assert relative(got, wanted) < 2e-5
        assert all(relative(one, value) < 0.3 for one, value in zip(got, kept_values[depths], strict=True))


def long_cache(
    bench: Bench, keys: np.ndarray, values: np.ndarray, kv: KvFormat
) -> tuple[Cache, np.ndarray, np.ndarray]:
    """A cache of one head holding the rows, and the rows as it gives them back in float64."""
    if kv is KvFormat.F16:
        halves = [rows.astype(np.float16) for rows in (keys, values)]
        return Cache(*map(bench.put, halves), kv), *(h.astype(np.float64) for h in halves)
    groups = np.stack([keys, values], axis=1).astype(np.float64).reshape(len(keys), 2, -1, 32)
    scales = (np.abs(groups).max(axis=-1) / 127).astype(np.float32)
    steps = np.rint(groups / scales[..., None].astype(np.float64)).astype(np.int8)
    kept = (steps * scales[..., None].astype(np.float64)).reshape(len(keys), 2, -1)
    stored = [bench.put(steps[:, side].reshape(len(keys), -1)) for side in range(2)]
    return Cache(*stored, kv, bench.put(scales)), kept[:, 0], kept[:, 1]


def test_head_norms_come_before_the_rotation(bench: Bench) -> None:
    shape = HeadShape(2, 1, 32, 32, False, 1e-6)
    row = normal(1, shape.qkv_size)
    norms = normal(32, seed=6), normal(32, seed=7)
    qkv: Activations = bench.activations(row)
    table = bench.put(rope.angles(shape, BASE, 64, None))
    launch = rope.dispatch(
        records_at(bench, 50, 1), qkv, empty_cache(bench, shape, 64, KvFormat.F32), table, shape, 1,
        (bench.put(norms[0]), bench.put(norms[1])),
    )  # fmt: skip
    got = bench.run([launch], qkv, 1).reshape(4, 32)
    heads = row.astype(np.float64).reshape(4, 32)
    queries = rmsnorm.reference(heads[:2], norms[0].astype(np.float64), 1e-6)
    assert relative(got[:2], rope.reference(queries, 50, shape, BASE)) < 2e-6
