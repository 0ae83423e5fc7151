"""A model's tensors on the GPU: planned first, then loaded tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.errors import ModelError
from app.engine.arch import DenseConfig
from app.engine.device import Gpu
from app.engine.gguf import GgufFile, TensorInfo
from app.engine.memory import Allocator, Arena, Slice, upload
from app.engine.ops.rope import angles
from app.engine.types import Part
from app.engine.weights.layout import UNIT
from app.engine.weights.matrix import Matrix, MatrixPlan, joinable, load_matrix, plan_matrix
from app.engine.weights.reference import dequantise

Loaded = Callable[[float], None]
Cancelled = Callable[[], bool]


class LoadCancelled(Exception):
    """The load was called off; nothing of it stays."""


def stride(size: int) -> int:
    """Floats between columns of an activation: whole units, so that padded weights meet zeros."""
    return -(-size // UNIT) * UNIT


@dataclass(frozen=True)
class Layer:
    """One transformer block. ``qkv`` and ``gate_up`` are one matrix where the file's types allow, else several."""

    attention_norm: Slice
    qkv: tuple[Matrix, ...]
    qkv_bias: Slice | None
    head_norms: tuple[Slice, Slice] | None
    output: Matrix
    ffn_norm: Slice
    gate_up: tuple[Matrix, ...]
    down: Matrix


@dataclass(frozen=True)
class Weights:
    """What a part of the model has on the GPU. ``head`` is the embedding where the two are tied."""

    layers: tuple[Layer, ...]
    rope: Slice
    embedding: Matrix | None
    output_norm: Slice | None
    head: Matrix | None


@dataclass
class _LayerPlan:
    index: int
    qkv: list[MatrixPlan]
    output: MatrixPlan
    gate_up: list[MatrixPlan]
    down: MatrixPlan

    def matrices(self) -> list[MatrixPlan]:
        return [*self.qkv, self.output, *self.gate_up, self.down]


@dataclass
class WeightPlan:
    """Which matrices a part needs and how they are joined and cut, known before anything is allocated."""

    layers: list[_LayerPlan] = field(default_factory=list)
    embedding: MatrixPlan | None = None
    head: MatrixPlan | None = None

    def matrices(self) -> Iterator[MatrixPlan]:
        for layer in self.layers:
            yield from layer.matrices()
        yield from (m for m in (self.embedding, self.head) if m)

    @property
    def nbytes(self) -> int:
        return sum(size for matrix in self.matrices() for size in matrix.sizes())


def plan_weights(file: GgufFile, config: DenseConfig, part: Part, binding: int) -> WeightPlan:
    """Plans a part; ModelError for a tensor that is missing, of another shape or of an unsupported type."""
    if not 0 <= part.lo <= part.hi <= config.layers:
        raise ModelError(f"Layers {part.lo}-{part.hi} do not exist; the model has {config.layers}.")
    plan = WeightPlan([_plan_layer(file, config, i, binding) for i in range(part.lo, part.hi)])
    if part.embed or (part.head and config.tied):
        plan.embedding = plan_matrix([_matrix(file, "token_embd.weight", config.vocab, config.hidden)], binding)
    if part.head and not config.tied:
        plan.head = plan_matrix([_matrix(file, "output.weight", config.vocab, config.hidden)], binding)
    return plan


def _plan_layer(file: GgufFile, config: DenseConfig, index: int, binding: int) -> _LayerPlan:
    def find(name: str, rows: int, columns: int) -> TensorInfo:
        return _matrix(file, f"blk.{index}.{name}.weight", rows, columns)

    hidden, inner = config.hidden, config.inner
    qkv = [
        find("attn_q", config.attention_size, hidden),
        find("attn_k", config.heads.kv_size, hidden),
        find("attn_v", config.heads.kv_size, hidden),
    ]
    gate_up = [find("ffn_gate", inner, hidden), find("ffn_up", inner, hidden)]
    return _LayerPlan(
        index,
        _joined(qkv, binding),
        plan_matrix([find("attn_output", hidden, config.attention_size)], binding),
        _joined(gate_up, binding),
        plan_matrix([find("ffn_down", hidden, inner)], binding),
    )


def _joined(tensors: Sequence[TensorInfo], binding: int) -> list[MatrixPlan]:
    if joinable(tensors):
        return [plan_matrix(tensors, binding)]
    return [plan_matrix([tensor], binding) for tensor in tensors]


def _matrix(file: GgufFile, name: str, rows: int, columns: int) -> TensorInfo:
    tensor = file.tensor(name)
    if tensor.shape != (rows, columns):
        raise ModelError(
            f"{name} is {' x '.join(map(str, tensor.shape))} where {rows} x {columns} is needed.",
            "The file does not fit its own description; get another.",
        )
    return tensor


class WeightLoader:
    """Uploads a planned part. ``loaded`` is told the share done after each matrix."""

    def __init__(
        self, gpu: Gpu, allocator: Allocator, file: GgufFile, config: DenseConfig,
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
        layers = tuple(self._layer(layer, arena) for layer in plan.layers)
        embedding = self._matrix(plan.embedding, arena) if plan.embedding else None
        head = self._matrix(plan.head, arena) if plan.head else embedding
        return Weights(
            layers,
            self._rope(positions),
            embedding if part.embed else None,
            self._vector("output_norm.weight", self._config.hidden) if part.head else None,
            head if part.head else None,
        )

    def _layer(self, plan: _LayerPlan, arena: Arena) -> Layer:
        prefix = f"blk.{plan.index}."
        config, family = self._config, self._config.family
        return Layer(
            self._vector(prefix + "attn_norm.weight", config.hidden),
            tuple(self._matrix(m, arena) for m in plan.qkv),
            self._bias(prefix) if family.qkv_bias else None,
            self._head_norms(prefix) if family.head_norms else None,
            self._matrix(plan.output, arena),
            self._vector(prefix + "ffn_norm.weight", config.hidden),
            tuple(self._matrix(m, arena) for m in plan.gate_up),
            self._matrix(plan.down, arena),
        )

    def _matrix(self, plan: MatrixPlan, arena: Arena) -> Matrix:
        if self._cancelled():
            raise LoadCancelled
        matrix = load_matrix(self._gpu, self._file, plan, arena)
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
