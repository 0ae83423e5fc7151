"""Exactness of the engine on small random models it carries itself."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import ModelError, OutOfMemory, PromptError
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile, TensorType
from app.engine.model import LoadCancelled
from app.engine.options import Options, footprint
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part
from tests.engine.models import Shape, write_model

STEP, PROMPT = ColumnClass.STEP, ColumnClass.PROMPT
IDS = [int(i) for i in np.random.default_rng(8).integers(2, 512, 90)]
MIXED = {"attn_v.weight": TensorType.Q6_K, "ffn_down.weight": TensorType.Q5_0, "ffn_gate.weight": TensorType.Q4_0}
OPTIONS = Options(context=256, pledge=256 << 20, kv=KvFormat.F32, prompt_columns=64)

FAMILIES = {
    "llama": Shape("llama"),
    "qwen2": Shape("qwen2", tied=False, matrix=TensorType.Q4_K, types=MIXED),
    "qwen3": Shape("qwen3", matrix=TensorType.Q4_1, head=32, heads=8),
}


@pytest.fixture(scope="module", params=FAMILIES)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GgufFile:
    path = tmp_path_factory.mktemp("models") / f"{request.param}.gguf"
    return GgufFile.open(write_model(path, FAMILIES[request.param]))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> GgufFile:
    return GgufFile.open(write_model(tmp_path_factory.mktemp("models") / "plain.gguf", Shape()))


def whole(gpu: Gpu, file: GgufFile, options: Options = OPTIONS) -> Engine:
    return Engine.load(gpu, file, Part(0, 4, embed=True, head=True), options)


@pytest.mark.parametrize("kind", [STEP, PROMPT], ids=lambda k: k.value)
@pytest.mark.parametrize("cuts", [(2,), (1, 3)], ids=str)
def test_layer_ranges_chained_equal_the_whole_bit_for_bit(
    gpu: Gpu, file: GgufFile, kind: ColumnClass, cuts: tuple[int, ...]
) -> None:
    single = whole(gpu, file)
    expected = single.tokens(IDS[:40], 0, kind)
    logits = single.logits(expected[-2:])
    single.close()
    borders = [0, *cuts, 4]
    states: np.ndarray | None = None
    for lo, hi in itertools.pairwise(borders):
        part = Engine.load(gpu, file, Part(lo, hi, embed=lo == 0, head=hi == 4), OPTIONS)
        states = part.tokens(IDS[:40], 0, kind) if states is None else part.hidden(states, 0, kind)
        if hi == 4:
            assert np.array_equal(part.logits(states[-2:]), logits)
        part.close()
    assert np.array_equal(states, expected)


def test_step_columns_have_the_same_bits_at_any_width(gpu: Gpu, file: GgufFile) -> None:
    engine = whole(gpu, file)
    one_by_one = np.concatenate([engine.tokens([i], p, STEP) for p, i in enumerate(IDS[:33])])
    for sizes in ([16, 16, 1], [3, 8, 2, 16, 4]):
        start, parts = 0, []
        for size in sizes:
            parts.append(engine.tokens(IDS[start : start + size], start, STEP))
            start += size
        assert np.array_equal(np.concatenate(parts), one_by_one)
    engine.close()


def test_prompt_columns_have_the_same_bits_under_any_chunking(gpu: Gpu, file: GgufFile) -> None:
    engine = whole(gpu, file)
    at_once = engine.tokens(IDS, 0, PROMPT)
    for size in (1, 16, 37):
        parts = [engine.tokens(IDS[s : s + size], s, PROMPT) for s in range(0, len(IDS), size)]
        assert np.array_equal(np.concatenate(parts), at_once)
    engine.close()


def test_the_two_classes_agree_within_tolerance(gpu: Gpu, file: GgufFile) -> None:
    engine = whole(gpu, file)
    step, prompt = engine.tokens(IDS[:40], 0, STEP), engine.tokens(IDS[:40], 0, PROMPT)
    assert np.abs(step - prompt).max() <= 2e-3 * np.abs(step).max()
    engine.close()


def test_writing_a_position_forgets_what_came_after(gpu: Gpu, file: GgufFile) -> None:
    engine = whole(gpu, file)
    engine.tokens(IDS[:20], 0, PROMPT)
    expected = engine.tokens(IDS[20:24], 20, STEP)
    engine.tokens(IDS[40:60], 20, PROMPT)
    assert np.array_equal(engine.tokens(IDS[20:24], 20, STEP), expected)
    engine.close()


def test_decode_equals_tokens_and_head(gpu: Gpu, file: GgufFile) -> None:
    engine = whole(gpu, file)
    engine.tokens(IDS[:30], 0, PROMPT)
    fused = engine.decode(IDS[30], 30)
    apart = engine.candidates(engine.tokens([IDS[30]], 30, STEP))[0]
    assert fused.ids.tolist() == apart.ids.tolist()
    assert np.array_equal(fused.logits, apart.logits)
    row = engine.logits(engine.tokens([IDS[30]], 30, STEP))[0]
    assert fused.ids.tolist() == np.lexsort((np.arange(512), -row))[:64].tolist()
    engine.close()


def test_submitting_ahead_changes_nothing(gpu: Gpu, file: GgufFile) -> None:
    engine = whole(gpu, file)
    engine.tokens(IDS[:30], 0, PROMPT)
    slow = [IDS[30]]
    for position in range(30, 60):
        slow.append(engine.decode(slow[-1], position).best)
    engine.tokens(IDS[:30], 0, PROMPT)
    assert list(engine.greedy(IDS[30], 30, [], 30)) == slow[1:]
    stop = slow[12]
    until = slow[1 : slow.index(stop, 1) + 1]
    assert list(engine.greedy(IDS[30], 30, [stop], 30)) == until
    # The step that was already under way at the stop id has written no state: the next one sees the same past.
    following = 30 + len(until)
    again = engine.decode(IDS[50], following).logits
    engine.tokens(IDS[:30], 0, PROMPT)
    for position, token in enumerate([IDS[30], *until[:-1]], 30):
        engine.decode(token, position)
    assert np.array_equal(engine.decode(IDS[50], following).logits, again)
    engine.close()


def test_a_stopped_stream_leaves_the_engine_usable(gpu: Gpu, plain: GgufFile) -> None:
    engine = whole(gpu, plain)
    engine.tokens(IDS[:10], 0, PROMPT)
    stream = engine.greedy(IDS[10], 10, [], 50)
    first = next(stream)
    stream.close()
    assert engine.decode(IDS[10], 10).best == first
    engine.close()


def test_tensors_cut_at_the_binding_limit_change_no_bit(gpu: Gpu, file: GgufFile) -> None:
    expected = whole(gpu, file)
    want = expected.logits(expected.tokens(IDS[:20], 0, STEP)[-1:])
    expected.close()
    small = Gpu.open(binding=160 << 10)
    options = Options(context=64, pledge=256 << 20, kv=KvFormat.F32, prompt_columns=16)
    engine = Engine.load(small, file, Part(0, 4, embed=True, head=True), options)
    got = engine.logits(engine.tokens(IDS[:20], 0, STEP)[-1:])
    engine.close()
    small.close()
    assert np.array_equal(got, want)


def test_the_footprint_is_what_is_allocated(gpu: Gpu, file: GgufFile) -> None:
    part = Part(1, 4, head=True)
    planned = footprint(file, part, OPTIONS, gpu.caps.binding)
    engine = Engine.load(gpu, file, part, OPTIONS)
    used = engine.allocator.by_purpose()
    assert used["KV cache"] == planned.caches
    assert used["scratch"] == planned.scratch
    assert 0 <= used["weights"] - planned.weights < 0.15 * planned.weights
    engine.close()
    assert engine.allocator.used == 0


def test_the_pledge_is_never_passed(gpu: Gpu, plain: GgufFile) -> None:
    engine = whole(gpu, plain)
    needed = engine.allocator.peak
    engine.close()
    with pytest.raises(OutOfMemory, match="lends"):
        whole(gpu, plain, Options(context=256, pledge=needed - 100_000, kv=KvFormat.F32, prompt_columns=64))
    fits = whole(gpu, plain, Options(context=256, pledge=needed, kv=KvFormat.F32, prompt_columns=64))
    assert fits.allocator.peak <= needed
    fits.close()


def test_chunks_go_one_by_one_where_the_pledge_has_no_room_to_read_two_back(gpu: Gpu, plain: GgufFile) -> None:
    roomy = whole(gpu, plain)
    roomy.tokens(IDS[:64], 0, PROMPT)
    needed, expected = roomy.allocator.peak, roomy.tokens(IDS, 0, PROMPT)
    assert roomy.allocator.peak > needed
    roomy.close()
    tight = whole(gpu, plain, replace(OPTIONS, pledge=needed))
    assert np.array_equal(tight.tokens(IDS, 0, PROMPT), expected)
    assert tight.allocator.peak <= needed
    tight.close()


@pytest.mark.parametrize("context", [-1, 0, 1025])
def test_a_context_the_model_was_not_made_for_is_refused(gpu: Gpu, plain: GgufFile, context: int) -> None:
    with pytest.raises(ModelError, match="1024 positions"):
        whole(gpu, plain, Options(context=context, pledge=1 << 30))


def test_a_load_can_be_called_off(gpu: Gpu, plain: GgufFile) -> None:
    shares: list[float] = []
    with pytest.raises(LoadCancelled):
        Engine.load(gpu, plain, Part(0, 4), OPTIONS, shares.append, lambda: len(shares) > 3)
    assert 3 < len(shares) < 10


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda e: e.tokens([5], 256, STEP), PromptError),
        (lambda e: e.tokens([600], 0, STEP), PromptError),
        (lambda e: e.tokens([], 0, STEP), PromptError),
        (lambda e: e.hidden(np.zeros((1, 7), np.float32), 0, STEP), ModelError),
        (lambda e: e.logits(np.zeros((17, 256), np.float32)), ModelError),
    ],
)
def test_bad_calls_are_refused(gpu: Gpu, plain: GgufFile, call, error: type[Exception]) -> None:
    engine = whole(gpu, plain)
    with pytest.raises(error):
        call(engine)
    engine.close()


def test_a_part_without_head_says_so(gpu: Gpu, plain: GgufFile) -> None:
    engine = Engine.load(gpu, plain, Part(1, 2), OPTIONS)
    with pytest.raises(ModelError, match="head"):
        engine.logits(np.zeros((1, 256), np.float32))
    with pytest.raises(ModelError, match="embedding"):
        engine.tokens([5], 0, STEP)
    engine.close()


def test_another_family_is_refused_by_name(tmp_path: Path) -> None:
    file = GgufFile.open(write_model(tmp_path / "m.gguf", Shape("gemma3", layers=1)))
    with pytest.raises(ModelError, match="gemma3"):
        footprint(file, Part(0, 1), OPTIONS, 1 << 30)


def test_the_fast_arithmetic_keeps_the_rules_of_both_classes(gpu: Gpu, file: GgufFile) -> None:
    fast = replace(OPTIONS, arithmetic=Arithmetic.FAST)
    engine = whole(gpu, file, fast)
    steps = np.concatenate([engine.tokens([i], p, STEP) for p, i in enumerate(IDS[:20])])
    assert np.array_equal(
        np.concatenate([engine.tokens(IDS[:16], 0, STEP), engine.tokens(IDS[16:20], 16, STEP)]), steps
    )
    at_once = engine.tokens(IDS, 0, PROMPT)
    parts = [engine.tokens(IDS[s : s + 37], s, PROMPT) for s in range(0, len(IDS), 37)]
    assert np.array_equal(np.concatenate(parts), at_once)
    low, high = Engine.load(gpu, file, Part(0, 2, embed=True), fast), Engine.load(gpu, file, Part(2, 4), fast)
    assert np.array_equal(high.hidden(low.tokens(IDS, 0, PROMPT), 0, PROMPT), at_once)
    exact = whole(gpu, file)
    first = exact.tokens(IDS[:1], 0, PROMPT)
    assert 0 < np.abs(first - at_once[:1]).max() < 0.1 * np.abs(first).max()
    for part in (engine, low, high, exact):
        part.close()
