"""Whole models of every kind of file: the mixes that quantisers write, half precision, mixtures of experts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile, TensorType
from app.engine.gguf.types import BLOCKS
from app.engine.options import Options
from app.engine.types import ColumnClass, Floats, KvFormat, Part
from tests.engine.models import Shape, as_floats, rewrite, write_model
from tests.golden import DATA, cases_of, run_case

STEP, PROMPT = ColumnClass.STEP, ColumnClass.PROMPT
CLASSES = pytest.mark.parametrize("kind", [STEP, PROMPT], ids=lambda k: k.value)
IDS = [int(i) for i in np.random.default_rng(8).integers(2, 512, 50)]
OPTIONS = Options(context=256, pledge=256 << 20, kv=KvFormat.F32, prompt_columns=64)
SAME_NUMBERS = 1e-3

Q2_K, Q3_K, Q4_K, Q5_K, Q6_K = (TensorType[name] for name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"))
IQ4_NL, IQ4_XS = TensorType.IQ4_NL, TensorType.IQ4_XS
OUTPUT = {"output.weight": Q6_K, "token_embd.weight": Q4_K}
MIXES: dict[str, tuple[TensorType, dict[str, TensorType]]] = {
    "Q2_K": (
        Q2_K,
        {"attn_v.weight": Q4_K, "attn_output.weight": Q3_K, "ffn_down.weight": Q3_K, "down_exps.weight": Q3_K},
    ),
    "Q3_K_M": (
        Q3_K,
        {"0.attn_v.weight": Q5_K, "attn_v.weight": Q4_K, "attn_output.weight": Q4_K, "0.ffn_down.weight": Q5_K},
    ),
    "IQ4_NL": (IQ4_NL, {"attn_v.weight": Q5_K, "0.ffn_down.weight": Q5_K, "0.ffn_down_exps.weight": Q5_K}),
    "IQ4_XS": (IQ4_XS, {"attn_v.weight": Q5_K, "1.ffn_down.weight": IQ4_NL, "0.ffn_down_exps.weight": Q6_K}),
}
DENSE = Shape("qwen3", layers=2, inner=256, heads=4, kv_heads=2, head=64, tied=False, deviation=0.06)
MIXTURE = replace(DENSE, family="qwen3moe", layers=3, experts=6, used=2)


def load(gpu: Gpu, path: Path, options: Options = OPTIONS, *, lo: int = 0, hi: int | None = None) -> Engine:
    file = GgufFile.open(path)
    layers = read_config(file).layers
    last = layers if hi is None else hi
    return Engine.load(gpu, file, Part(lo, last, embed=lo == 0, head=last == layers), options)


def outputs(gpu: Gpu, path: Path, kind: ColumnClass) -> tuple[Floats, Floats]:
    """States and the last logits of a whole pass."""
    engine = load(gpu, path)
    states = engine.tokens(IDS[:20], 0, kind)
    logits = engine.logits(states[-4:])
    engine.close()
    return states, logits


def relative(got: Floats, expected: Floats) -> float:
    return float(np.abs(got - expected).max() / np.abs(expected).max())


# --- the mixes of types that quantisers write ---


@CLASSES
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("shape", [DENSE, replace(MIXTURE, layers=2)], ids=["dense", "mixture"])
def test_a_mix_of_types_computes_what_its_numbers_say(
    gpu: Gpu, tmp_path: Path, shape: Shape, mix: str, kind: ColumnClass
) -> None:
    matrix, types = MIXES[mix]
    path = write_model(tmp_path / "mix.gguf", replace(shape, matrix=matrix, types=OUTPUT | types))
    stored = {t.kind for t in GgufFile.open(path).tensors.values()}
    assert len(stored) >= 4
    got = outputs(gpu, path, kind)
    expected = outputs(gpu, as_floats(path, tmp_path / "floats.gguf"), kind)
    assert max(map(relative, got, expected)) <= SAME_NUMBERS


# --- a plain mixture of experts: dense attention, no shared expert ---


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = replace(MIXTURE, matrix=TensorType.Q4_0, types={"ffn_up_exps.weight": TensorType.Q8_0})
    return write_model(tmp_path_factory.mktemp("models") / "mixture.gguf", shape)


@pytest.fixture(scope="module")
def engine(gpu: Gpu, mixture: Path) -> Iterator[Engine]:
    engine = load(gpu, mixture)
    yield engine
    engine.close()


@CLASSES
def test_cut_at_every_layer_the_states_are_the_same(gpu: Gpu, mixture: Path, engine: Engine, kind: ColumnClass) -> None:
    expected = engine.tokens(IDS[:20], 0, kind)
    for cut in range(1, engine.config.layers):
        low, high = load(gpu, mixture, hi=cut), load(gpu, mixture, lo=cut)
        assert np.array_equal(high.hidden(low.tokens(IDS[:20], 0, kind), 0, kind), expected)
        low.close()
        high.close()


def test_step_columns_have_the_same_bits_at_any_width(engine: Engine) -> None:
    alone = np.concatenate([engine.tokens([i], p, STEP) for p, i in enumerate(IDS[:21])])
    for sizes in ([16, 5], [3, 8, 2, 8]):
        ends = list(itertools.accumulate(sizes))
        parts = [engine.tokens(IDS[e - n : e], e - n, STEP) for n, e in zip(sizes, ends, strict=True)]
        assert np.array_equal(np.concatenate(parts), alone)


def test_prompt_columns_have_the_same_bits_under_any_chunking(engine: Engine) -> None:
    at_once = engine.tokens(IDS, 0, PROMPT)
    for size in (7, 16, 37):
        parts = [engine.tokens(IDS[s : s + size], s, PROMPT) for s in range(0, len(IDS), size)]
        assert np.array_equal(np.concatenate(parts), at_once)


def test_the_two_classes_agree(engine: Engine) -> None:
    step, prompt = engine.tokens(IDS[:20], 0, STEP), engine.tokens(IDS[:20], 0, PROMPT)
    assert relative(step, prompt) <= 2e-2


@CLASSES
def test_a_mixture_computes_what_its_numbers_say(gpu: Gpu, mixture: Path, tmp_path: Path, kind: ColumnClass) -> None:
    expected = outputs(gpu, as_floats(mixture, tmp_path / "floats.gguf"), kind)
    assert max(map(relative, outputs(gpu, mixture, kind), expected)) <= SAME_NUMBERS


# --- half precision, and models that llama.cpp's float results are known of ---


@CLASSES
@pytest.mark.parametrize("half", [TensorType.F16, TensorType.BF16], ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [DENSE, replace(MIXTURE, layers=2)], ids=["dense", "mixture"])
def test_models_in_half_precision(gpu: Gpu, tmp_path: Path, shape: Shape, half: TensorType, kind: ColumnClass) -> None:
    path = write_model(tmp_path / "half.gguf", replace(shape, matrix=half))
    expected = outputs(gpu, as_floats(path, tmp_path / "floats.gguf"), kind)
    assert max(map(relative, outputs(gpu, path, kind), expected)) <= 1e-5


def stored_as(name: str, path: Path, kind: TensorType) -> Path:
    """A golden model with its matrices, where rows are whole blocks, in another type."""

    def choose(tensor: str, values: np.ndarray) -> TensorType | None:
        fits = values.ndim > 1 and values.shape[-1] % BLOCKS[kind].values == 0
        return kind if fits and "conv1d" not in tensor and "gate_inp" not in tensor else None

    return rewrite(DATA / f"{name}.gguf", path, choose)


@CLASSES
@pytest.mark.parametrize("name", ["tiny-qwen35", "tiny-qwen35moe"])
def test_hybrids_in_whole_numbers(gpu: Gpu, tmp_path: Path, name: str, kind: ColumnClass) -> None:
    """Matrices of 48 columns stay floats: the shared expert is then apart from the others."""
    path = stored_as(name, tmp_path / "other.gguf", TensorType.Q8_0)
    expected = outputs(gpu, as_floats(path, tmp_path / "floats.gguf"), kind)
    assert max(map(relative, outputs(gpu, path, kind), expected)) <= SAME_NUMBERS


@CLASSES
@pytest.mark.parametrize(("half", "bound"), [(TensorType.F16, 0.3), (TensorType.BF16, 2.5)], ids=["F16", "BF16"])
def test_a_golden_hybrid_in_half_precision(
    gpu: Gpu, tmp_path: Path, half: TensorType, bound: float, kind: ColumnClass
) -> None:
    """The bounds are about twice what the rounding of the weights makes of logits up to 38."""
    path = stored_as("tiny-qwen35", tmp_path / "half.gguf", half)
    engine = load(gpu, path)
    outcome = run_case([engine], cases_of("tiny-qwen35")[0], kind)
    engine.close()
    assert max(outcome.errors) <= bound, outcome
    expected = outputs(gpu, as_floats(path, tmp_path / "floats.gguf"), kind)
    assert max(map(relative, outputs(gpu, path, kind), expected)) <= 1e-5
