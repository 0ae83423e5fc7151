"""The golden cases of ``tests.golden`` as tests."""

from itertools import islice

import pytest

from app.engine.device import Gpu
from app.engine.gguf import GgufFile
from app.engine.tokenizer import GgufTokenizer
from app.engine.types import ColumnClass, KvFormat
from tests.golden import cases_of, golden_models, load_cut, outcomes, run_case
from tests.starter import starter_model


@pytest.mark.parametrize("kind", list(ColumnClass), ids=lambda k: k.value)
@pytest.mark.parametrize("kv", list(KvFormat), ids=lambda k: k.value)
def test_tiny_qwen3(gpu: Gpu, kv: KvFormat, kind: ColumnClass) -> None:
    for outcome in outcomes(gpu, "tiny-qwen3", kv, kind):
        assert outcome.passes(kv), outcome


@pytest.mark.parametrize(("kv", "kind"), [(KvFormat.F32, ColumnClass.PROMPT), (KvFormat.F16, ColumnClass.STEP)])
def test_smollm2(gpu: Gpu, kv: KvFormat, kind: ColumnClass) -> None:
    """Step columns read a prompt slowly on a processor: two cases are enough there, tests.golden runs all."""
    most = 2 if kind is ColumnClass.STEP else None
    for outcome in islice(outcomes(gpu, "smollm2-135m-q4_1-float", kv, kind), most):
        assert outcome.passes(kv), outcome


def test_smollm2_cut_in_two_with_half_precision_between(gpu: Gpu) -> None:
    name = "smollm2-135m-q4_1-float"
    engines = load_cut(gpu, golden_models()[name], KvFormat.F16, 17)
    outcome = run_case(engines, cases_of(name)[0], ColumnClass.PROMPT, rounded=True)
    for engine in engines:
        engine.close()
    assert outcome.passes(KvFormat.F16), outcome


def test_smollm2_splits_text_as_llama_cpp_does() -> None:
    tokenizer = GgufTokenizer(GgufFile.open(starter_model()).metadata)
    for case in cases_of("smollm2-135m-q4_1-float"):
        assert tokenizer.encode_with_specials(case["prompt"]) == case["prompt_ids"]
    assert tokenizer.encode("in 2018 it rained 12.5 mm")[1:5] == [tokenizer.encode(c)[0] for c in " 201"]
