"""The check of a GPU's kernels passes on this one, covers every part, and names what is wrong."""

import importlib

import numpy as np
import pytest

from app.core.errors import GpuError
from app.engine.device import Gpu
from app.engine.gguf import TensorType
from app.engine.ops.delta import DeltaShape
from app.engine.ops.experts import ExpertShape
from app.engine.ops.rope import HeadShape
from app.engine.options import tuning_for
from app.engine.selftest import check_kernels
from app.engine.types import Arithmetic, KvFormat

HEADS = HeadShape(4, 2, 32, 32, False, 1e-6)
EXPERTS, DELTA = ExpertShape(64, 3, 96, 96, True), DeltaShape(2, 4, 16, 4, 1e-6)
FAST, EXACT = Arithmetic.FAST, Arithmetic.EXACT


def check(gpu: Gpu, arithmetic: Arithmetic) -> None:
    kinds = [TensorType.Q4_0, TensorType.F32]
    check_kernels(gpu, kinds, HEADS, KvFormat.F16, tuning_for(gpu), experts=EXPERTS, delta=DELTA, arithmetic=arithmetic)


@pytest.mark.parametrize("arithmetic", list(Arithmetic), ids=lambda a: a.value)
def test_this_device_passes(gpu: Gpu, arithmetic: Arithmetic) -> None:
    check(gpu, arithmetic)


@pytest.mark.parametrize(
    ("place", "arithmetic", "named"),
    [
        ("products.matvec.reference", EXACT, "matvec F32"),
        ("products.quantise.reference", FAST, "fast matvec Q4_0"),
        ("attention.attention.reference", EXACT, "attention"),
        ("experts.experts.mixture_reference", EXACT, "experts of a step"),
        ("experts.experts.mixture_reference", FAST, "experts of a step"),
        ("delta.delta.reference", EXACT, "DeltaNet"),
    ],
)
def test_a_wrong_result_is_named(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, place: str, arithmetic: Arithmetic, named: str
) -> None:
    """To the check it is one whether the kernel is off or what it is held against."""
    module, name = f"app.engine.selftest.{place}".rsplit(".", 1)
    owner = _attribute(module)
    true = getattr(owner, name)

    def off(*args: object) -> object:
        result = true(*args)
        return tuple(np.multiply(part, 1.1) for part in result) if isinstance(result, tuple) else result * 1.1

    monkeypatch.setattr(owner, name, off)
    with pytest.raises(GpuError, match=named):
        check(gpu, arithmetic)


def _attribute(path: str) -> object:
    """The op's module that ``app.engine.selftest.PART.OP`` names."""
    part, op = path.rsplit(".", 1)
    return getattr(importlib.import_module(part), op)
