"""A throw-away check of a GPU's kernels against NumPy before a model is trusted to it (spec: product R-034)."""

from __future__ import annotations

from collections.abc import Iterable

from app.engine.device import Gpu
from app.engine.gguf.types import TensorType
from app.engine.ops.delta import DeltaShape
from app.engine.ops.experts import ExpertShape
from app.engine.ops.matvec import Tuning
from app.engine.ops.rope import HeadShape
from app.engine.selftest.attention import check_attention
from app.engine.selftest.bench import Bench, random_matrix
from app.engine.selftest.delta import check_delta
from app.engine.selftest.experts import check_experts
from app.engine.selftest.products import check_fast_products, check_products
from app.engine.types import Arithmetic, KvFormat

__all__ = ["Bench", "check_kernels", "random_matrix"]


def check_kernels(
    gpu: Gpu, kinds: Iterable[TensorType], shape: HeadShape, kv: KvFormat, tuning: Tuning, *,
    experts: ExpertShape | None = None, delta: DeltaShape | None = None, arithmetic: Arithmetic = Arithmetic.EXACT,
) -> None:  # fmt: skip
    """Runs the kernels a model will use; GpuError names the one whose result is wrong.

    Of a mixture the stacks' kernels are tried with the first of ``kinds``.
    """
    bench, types = Bench(gpu), sorted(set(kinds))
    try:
        for kind in types:
            check_products(bench, kind, tuning)
            if arithmetic is Arithmetic.FAST:
                check_fast_products(bench, kind)
        check_attention(bench, shape, kv)
        if experts:
            check_experts(bench, types[0], experts, tuning, arithmetic)
        if delta:
            check_delta(bench, delta)
    finally:
        bench.close()
