"""Uploads a planned part of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing

import numpy as np

from app.core.errors import ModelError
from app.engine.arch import Mixer, ModelConfig
from app.engine.device import Gpu
from app.engine.gguf import GgufFile
from app.engine.memory import Allocator, Arena, Slice, upload
from app.engine.model.pipeline import loaded_blocks
from app.engine.model.plan import DraftPlan, FfnPlan, LayerPlan, WeightPlan
from app.engine.model.weights import AttentionMixer, DeltaMixer, DenseFfn, Draft, ExpertFfn, Layer, Weights
from app.engine.ops.delta import joined_weights
from app.engine.ops.rope import angles
from app.engine.types import Part
from app.engine.weights.layout import stride
from app.engine.weights.matrix import Matrix, MatrixPlan
from app.engine.weights.reference import dequantise

Loaded = Callable[[float], None]
Cancelled = Callable[[], bool]


class LoadCancelled(Exception):
    """The load was called off; nothing of it stays."""


class WeightLoader:
    """``loaded`` is told the share done after each matrix."""

    def __init__(
        self, gpu: Gpu, allocator: Allocator, file: GgufFile, config: ModelConfig,
        loaded: Loaded | None, cancelled: Cancelled | None,
    ) -> None:  # fmt: skip
        self._gpu = gpu
        self._allocator = allocator
        self._file = file
        self._config = config
        self._loaded = loaded or (lambda _share: None)
        self._cancelled = cancelled or (lambda: False)
        self._done = 0
        self._total = 1

    def load(self, plan: WeightPlan, part: Part, positions: int) -> Weights:
        """Raises OutOfMemory, FileError or LoadCancelled; what was allocated is freed by the allocator's owner."""
        self._total = max(plan.nbytes, 1)
        arena = Arena(self._allocator, [s for m in plan.matrices() for s in m.sizes()], "weights")
        with closing(loaded_blocks(self._gpu, self._file, plan.matrices(), arena)) as self._blocks:
            return self._weights(plan, part, positions)

    def _weights(self, plan: WeightPlan, part: Part, positions: int) -> Weights:
        layers = tuple(self._layer(layer) for layer in plan.layers)
        embedding = self._matrix(plan.embedding) if plan.embedding else None
        head = self._matrix(plan.head) if plan.head else embedding
        return Weights(
            layers,
            self._rope(positions),
            embedding if part.embed or part.draft else None,
            self._vector("output_norm.weight", self._config.hidden) if part.head else None,
            head if part.head else None,
            self._draft(plan.draft) if plan.draft else None,
        )

    def _layer(self, plan: LayerPlan) -> Layer:
        prefix, config = f"blk.{plan.index}.", self._config
        mixer = self._attention if plan.mixer is Mixer.ATTENTION else self._delta
        return Layer(
            self._vector(prefix + "attn_norm.weight", config.hidden),
            mixer(plan, prefix),
            self._vector(f"{prefix}{config.family.ffn_norm}.weight", config.hidden),
            self._experts(plan.ffn) if plan.ffn.router else self._dense(plan.ffn),
        )

    def _attention(self, plan: LayerPlan, prefix: str) -> AttentionMixer:
        family = self._config.family
        return AttentionMixer(
            self._matrices(plan.inputs),
            self._bias(prefix) if family.qkv_bias else None,
            self._head_norms(prefix) if family.head_norms else None,
            self._matrix(plan.output),
        )

    def _delta(self, plan: LayerPlan, prefix: str) -> DeltaMixer:
        shape = self._config.delta
        assert shape
        taps = self._values(prefix + "ssm_conv1d.weight", shape.channels * shape.taps)
        sizes = {"ssm_a": shape.value_heads, "ssm_dt.bias": shape.value_heads, "ssm_norm.weight": shape.size}
        a, dt, norm = (self._values(prefix + name, size) for name, size in sizes.items())
        weights = self._upload(joined_weights(taps.reshape(-1, shape.taps), a, dt, norm))
        return DeltaMixer(self._matrices(plan.inputs), weights, self._matrix(plan.output))

    def _dense(self, plan: FfnPlan) -> DenseFfn:
        return DenseFfn(self._matrices(plan.gate_up), self._matrix(plan.down))

    def _experts(self, plan: FfnPlan) -> ExpertFfn:
        router, gate_up = self._matrices(plan.router), self._matrices(plan.gate_up)
        down = self._matrix(plan.down)
        return ExpertFfn(router, gate_up, down, self._dense(plan.shared) if plan.shared else None, plan.joined)

    def _draft(self, plan: DraftPlan) -> Draft:
        prefix, hidden = f"blk.{plan.layer.index}.nextn.", self._config.hidden
        join = self._matrix(plan.join)
        embedding, state, output = (
            self._vector(f"{prefix}{name}.weight", hidden) for name in ("enorm", "hnorm", "shared_head_norm")
        )
        return Draft(embedding, state, join, self._layer(plan.layer), output)

    def _matrices(self, plans: Iterable[MatrixPlan]) -> tuple[Matrix, ...]:
        return tuple(self._matrix(plan) for plan in plans)

    def _matrix(self, plan: MatrixPlan) -> Matrix:
        if self._cancelled():
            raise LoadCancelled
        matrix = Matrix(plan.kind, plan.rows, plan.columns, tuple(next(self._blocks) for _ in plan.cuts))
        self._done += sum(plan.sizes())
        self._loaded(min(self._done / self._total, 1.0))
        return matrix

    def _head_norms(self, prefix: str) -> tuple[Slice, Slice]:
        size = self._config.heads.size
        return self._vector(prefix + "attn_q_norm.weight", size), self._vector(prefix + "attn_k_norm.weight", size)

    def _bias(self, prefix: str) -> Slice:
        parts = [
            self._values(f"{prefix}attn_{name}.bias", size)
            for name, size in (
                ("q", self._config.attention_size),
                ("k", self._config.heads.kv_size),
                ("v", self._config.heads.kv_size),
            )
        ]
        return self._upload(np.concatenate(parts))

    def _vector(self, name: str, size: int) -> Slice:
        values = self._values(name, size)
        return self._upload(np.pad(values, (0, stride(size) - size)))

    def _values(self, name: str, size: int) -> np.ndarray:
        tensor = self._file.tensor(name)
        if tensor.values != size:
            raise ModelError(f"{name} has {tensor.values} values where {size} are needed.", "Get another file.")
        return dequantise(tensor.kind, self._file.read(tensor), 1, size)[0]

    def _rope(self, positions: int) -> Slice:
        factors = None
        if "rope_freqs.weight" in self._file.tensors:
            factors = self._values("rope_freqs.weight", self._config.heads.rotary // 2)
        return self._upload(angles(self._config.heads, self._config.rope_base, positions, factors))

    def _upload(self, values: np.ndarray) -> Slice:
        target = self._allocator.buffer(values.nbytes, "weights")
        upload(self._gpu, target, values)
        return target
