"""The golden cases of ``tests.golden`` as tests."""

from itertools import islice

import numpy as np
import pytest

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options
from app.engine.tokenizer import GgufTokenizer
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part
from tests.golden import BOUNDS, MID, NANO, QUANTS, cases_of, golden_models, load_cut, outcomes, run_case
from tests.shared import shared_file
from tests.starter import starter_model

STEP, PROMPT = ColumnClass.STEP, ColumnClass.PROMPT
SMOLLM2 = "smollm2-135m-q4_1-float"
NANO_FILE = "models/nano-qwen35moe-Q8_0.gguf"


def check(gpu: Gpu, name: str, kv: KvFormat, kind: ColumnClass, most: int | None = None) -> None:
    for outcome in islice(outcomes(gpu, name, kv, kind), most):
        assert outcome.passes(kv), outcome


@pytest.mark.parametrize("kind", list(ColumnClass), ids=lambda k: k.value)
@pytest.mark.parametrize("kv", list(BOUNDS), ids=lambda k: k.value)
@pytest.mark.parametrize("name", ["tiny-qwen3", "tiny-qwen35", "tiny-qwen35moe"])
def test_tiny(gpu: Gpu, name: str, kv: KvFormat, kind: ColumnClass) -> None:
    check(gpu, name, kv, kind)


@pytest.mark.parametrize(("kv", "kind"), [(KvFormat.F32, PROMPT), (KvFormat.F16, STEP)])
def test_smollm2(gpu: Gpu, kv: KvFormat, kind: ColumnClass) -> None:
    """Step columns read a prompt slowly on a processor: two cases are enough there, tests.golden runs all."""
    check(gpu, SMOLLM2, kv, kind, 2 if kind is STEP else None)


@pytest.mark.parametrize(("kv", "kind"), [(KvFormat.F32, STEP), (KvFormat.F32, PROMPT), (KvFormat.F16, PROMPT)])
def test_nano(gpu: Gpu, kv: KvFormat, kind: ColumnClass) -> None:
    shared_file(NANO_FILE)
    check(gpu, NANO, kv, kind)


@pytest.mark.parametrize("quant", QUANTS)
def test_mid_in_every_quantisation(gpu: Gpu, quant: str) -> None:
    shared_file(f"models/{MID}-{quant}.gguf")
    check(gpu, f"{MID}-{quant}", KvFormat.F32, PROMPT)


@pytest.mark.parametrize("cut", range(1, 8))
def test_nano_cut_at_every_layer_with_half_precision_between(gpu: Gpu, cut: int) -> None:
    shared_file(NANO_FILE)
    check_cut(gpu, NANO, cut)


def test_smollm2_cut_in_two_with_half_precision_between(gpu: Gpu) -> None:
    check_cut(gpu, SMOLLM2, 17)


def check_cut(gpu: Gpu, name: str, cut: int) -> None:
    engines = load_cut(gpu, golden_models()[name], KvFormat.F16, cut)
    outcome = run_case(engines, cases_of(name)[0], PROMPT, rounded=True)
    for engine in engines:
        engine.close()
    assert outcome.passes(KvFormat.F16), outcome


@pytest.mark.parametrize(("name", "kinds"), [(SMOLLM2, [PROMPT]), (NANO, [STEP, PROMPT])])
def test_the_fast_arithmetic_says_nearly_the_same_as_the_exact_one(
    gpu: Gpu, name: str, kinds: list[ColumnClass]
) -> None:
    """The gate of golden/README: mean KL at most 0.01 over the whole vocabulary, best token equal in 97 %."""
    if name == NANO:
        shared_file(NANO_FILE)
    for kind in kinds:
        exact = log_shares(gpu, name, kind, KvFormat.F32, Arithmetic.EXACT)
        check_near(exact, log_shares(gpu, name, kind, KvFormat.F32, Arithmetic.FAST))


def test_int8_caches_say_nearly_the_same_as_whole_ones(gpu: Gpu) -> None:
    shared_file(NANO_FILE)
    exact = log_shares(gpu, NANO, PROMPT, KvFormat.F32, Arithmetic.EXACT)
    check_near(exact, log_shares(gpu, NANO, PROMPT, KvFormat.INT8, Arithmetic.EXACT))


def check_near(exact: np.ndarray, other: np.ndarray) -> None:
    assert (np.exp(exact) * (exact - other)).sum(axis=1).mean() <= 0.01
    assert (exact.argmax(axis=1) == other.argmax(axis=1)).mean() >= 0.97
    assert not np.array_equal(exact, other)


def log_shares(gpu: Gpu, name: str, kind: ColumnClass, kv: KvFormat, arithmetic: Arithmetic) -> np.ndarray:
    """[positions, vocab] log-probabilities at all golden prompt positions."""
    file = GgufFile.open(golden_models()[name])
    part = Part(0, read_config(file).layers, embed=True, head=True)
    engine = Engine.load(gpu, file, part, Options(512, 2 << 30, kv, arithmetic=arithmetic))
    rows: list[np.ndarray] = []
    for case in cases_of(name):
        states = engine.tokens(case["prompt_ids"], 0, kind)
        rows += [engine.logits(states[i : i + 16]) for i in range(0, len(states), 16)]
    engine.close()
    logits = np.concatenate(rows).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def test_smollm2_splits_text_as_llama_cpp_does() -> None:
    tokenizer = GgufTokenizer(GgufFile.open(starter_model()).metadata)
    for case in cases_of(SMOLLM2):
        assert tokenizer.encode_with_specials(case["prompt"]) == case["prompt_ids"]
    assert tokenizer.encode("in 2018 it rained 12.5 mm")[1:5] == [tokenizer.encode(c)[0] for c in " 201"]
