"""A mixture of experts: routes, the chosen experts of step columns, and those of prompt columns in groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.engine.gguf.types import TensorType
from app.engine.memory import Slice
from app.engine.ops import experts, fast_matvec, quantise, swiglu
from app.engine.ops.experts import ExpertBuffers, ExpertShape
from app.engine.ops.matvec import Activations, Tuning
from app.engine.ops.quantise import Quantised
from app.engine.placement import Epilogue
from app.engine.program import Dispatch
from app.engine.selftest.bench import Bench, random_matrix
from app.engine.types import Arithmetic
from app.engine.weights.matrix import Block
from app.engine.weights.reference import dequantise

_HIDDEN, _INNER, _COUNT = 256, 256, 8
_STEP, _PROMPT = 2, 16
_TOLERANCE = 1e-4
_FAST_TOLERANCE = 3e-2
"""The experts' own outputs are rounded to int8, too."""


def check_experts(bench: Bench, kind: TensorType, shape: ExpertShape, tuning: Tuning, arithmetic: Arithmetic) -> None:
    """A small mixture that chooses as many as the model's does."""
    shape = replace(shape, count=max(min(shape.count, _COUNT), shape.used), inner=_INNER, shared_inner=0)
    mixture = _make(bench, kind, shape, tuning)
    fast = arithmetic is Arithmetic.FAST and fast_matvec.takes(mixture.down)
    tolerance = _FAST_TOLERANCE if fast else _TOLERANCE
    for name, count, launches in (
        ("experts of a step", _STEP, mixture.fast_step if fast else mixture.step),
        ("experts of a prompt", _PROMPT, mixture.fast_prompt if fast else mixture.prompt),
    ):
        h = bench.activations(np.zeros((_PROMPT, _HIDDEN), np.float32))
        got = bench.run([mixture.route(count), *launches(h, count)], h, count)
        bench.compare(f"{name} {kind.name}", got, mixture.expected[:count], tolerance)


@dataclass(frozen=True)
class _Mixture:
    """A layer of experts over ``x``, int8 in ``whole``; ``expected`` [columns, hidden]."""

    bench: Bench
    shape: ExpertShape
    tuning: Tuning
    gate_up: Block
    down: Block
    logits: Activations
    buffers: ExpertBuffers
    x: Activations
    whole: Quantised
    expected: np.ndarray

    @property
    def routes(self) -> Slice:
        return self.buffers.routes

    def route(self, count: int) -> Dispatch:
        return experts.route_dispatch(self.logits, self.routes, self.shape, count)

    def step(self, h: Activations, count: int) -> list[Dispatch]:
        common, inner = (self.routes, self.shape, count, self.tuning), self.buffers.inner
        swi = experts.step_matvec(self.gate_up, 2 * _INNER, self.x, inner, *common, epilogue=Epilogue.SWIGLU)
        apart = self.bench.gpu.caps.software
        return [swi, *experts.step_down((self.down,), inner, h, *common, self.buffers.outputs, apart=apart)]

    def prompt(self, h: Activations, count: int) -> list[Dispatch]:
        caps, buffers = self.bench.gpu.caps, self.buffers
        placement = experts.placement_for(self.shape, count, caps.shared, software=caps.software)
        common = (buffers.groups, self.shape, count, placement)
        return [
            experts.sort_dispatch(self.routes, buffers.groups, self.shape, count, placement.columns),
            experts.grouped_matmul(self.gate_up, 2 * _INNER, self.x, buffers.gate_up, *common),
            swiglu.dispatch(buffers.gate_up, buffers.inner, _INNER, count * self.shape.used),
            experts.grouped_matmul(self.down, _HIDDEN, buffers.inner, buffers.outputs, *common, per_slot=True),
            experts.combine_dispatch(buffers.outputs, h, self.routes, self.shape, _HIDDEN, count),
        ]

    def fast_step(self, h: Activations, count: int) -> list[Dispatch]:
        caps, inner, whole = self.bench.gpu.caps, self.buffers.inner, self.buffers.quantised
        common = (self.routes, self.shape, count, caps)
        return [
            quantise.dispatch(self.x, self.whole, count, caps),
            experts.fast_step_matvec(self.gate_up, 2 * _INNER, self.whole, inner, *common, epilogue=Epilogue.SWIGLU),
            quantise.dispatch(inner, whole, count * self.shape.used, caps),
            experts.fast_step_down(self.down, whole, h, *common),
        ]

    def fast_prompt(self, h: Activations, count: int) -> list[Dispatch]:
        caps, buffers, whole = self.bench.gpu.caps, self.buffers, self.buffers.quantised
        common, pairs = (buffers.groups, self.shape, count, caps), count * self.shape.used
        tile = experts.fast_tile(self.shape, count, caps)
        return [
            quantise.dispatch(self.x, self.whole, count, caps),
            experts.sort_dispatch(self.routes, buffers.groups, self.shape, count, tile),
            experts.fast_grouped_matmul(self.gate_up, 2 * _INNER, self.whole, buffers.gate_up, *common),
            swiglu.dispatch(buffers.gate_up, buffers.inner, _INNER, pairs),
            quantise.dispatch(buffers.inner, whole, pairs, caps),
            experts.fast_grouped_matmul(self.down, _HIDDEN, whole, buffers.outputs, *common, per_slot=True),
            experts.combine_dispatch(buffers.outputs, h, self.routes, self.shape, _HIDDEN, count),
        ]


def _make(bench: Bench, kind: TensorType, shape: ExpertShape, tuning: Tuning) -> _Mixture:
    rng, count = np.random.default_rng(8), shape.count
    logits = rng.normal(size=(_PROMPT, -(-count // 32) * 32)).astype(np.float32)
    gate_up, wide = _stack(bench, kind, count, 2 * _INNER, _HIDDEN, 1)
    down, narrow = _stack(bench, kind, count, _HIDDEN, _INNER, 2)
    # Gates of ordinary size, neither closed nor wide open.
    x = (rng.normal(size=(_PROMPT, _HIDDEN)) / (wide.std() * _HIDDEN**0.5)).astype(np.float32)
    ids, weights = experts.route_reference(logits[:, :count].astype(np.float64), shape)
    return _Mixture(
        bench, shape, tuning, gate_up, down, bench.activations(logits),
        experts.make_expert_buffers(bench.allocator, shape, _HIDDEN, _PROMPT), bench.activations(x),
        quantise.make_quantised(bench.allocator, _HIDDEN, _PROMPT),
        experts.mixture_reference(x.astype(np.float64), wide, narrow, ids, weights),
    )  # fmt: skip


def _stack(bench: Bench, kind: TensorType, count: int, rows: int, columns: int, seed: int) -> tuple[Block, np.ndarray]:
    raw = random_matrix(kind, count * rows, columns, seed)
    weights = dequantise(kind, raw, count * rows, columns).astype(np.float64)
    return bench.block(kind, raw, count * rows, columns), weights.reshape(count, rows, columns)
