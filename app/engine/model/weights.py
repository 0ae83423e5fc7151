"""What a part of a model has on the GPU."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.memory import Slice
from app.engine.weights.matrix import Matrix


@dataclass(frozen=True)
class AttentionMixer:
    """``inputs`` are q, k, v and gate rows: one matrix where the file's types allow, else several."""

    inputs: tuple[Matrix, ...]
    bias: Slice | None
    head_norms: tuple[Slice, Slice] | None
    output: Matrix


@dataclass(frozen=True)
class DeltaMixer:
    """``inputs`` are q, k, v, z, beta and alpha rows, joined where the file's types allow."""

    inputs: tuple[Matrix, ...]
    delta: Slice
    output: Matrix


@dataclass(frozen=True)
class DenseFfn:
    """``gate_up`` is one matrix, gate rows first, or two."""

    gate_up: tuple[Matrix, ...]
    down: Matrix


@dataclass(frozen=True)
class ExpertFfn:
    """``router`` ends with the shared expert's gate. Stacks hold an expert's rows together, gate before up.

    The shared expert is the last of the stacks where they are ``joined``, else it is ``shared``, if there is one.
    """

    router: tuple[Matrix, ...]
    gate_up: tuple[Matrix, ...]
    down: Matrix
    shared: DenseFfn | None
    joined: bool


@dataclass(frozen=True)
class Layer:
    """One transformer block."""

    mixer_norm: Slice
    mixer: AttentionMixer | DeltaMixer
    ffn_norm: Slice
    ffn: DenseFfn | ExpertFfn


@dataclass(frozen=True)
class Draft:
    """The draft block (MTP): a layer over the joined embedding and trunk state (spec: engine §4.5)."""

    embedding_norm: Slice
    hidden_norm: Slice
    join: Matrix
    layer: Layer
    output_norm: Slice


@dataclass(frozen=True)
class Weights:
    """``head`` is the embedding where the two are tied."""

    layers: tuple[Layer, ...]
    rope: Slice
    embedding: Matrix | None
    output_norm: Slice | None
    head: Matrix | None
    draft: Draft | None
