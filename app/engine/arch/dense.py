"""Dense transformers: llama, qwen2 and qwen3 (spec: engine §3, oracles §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.core.errors import ModelError
from app.engine.gguf import GgufFile
from app.engine.ops.attention import check_shape
from app.engine.ops.rope import HeadShape


@dataclass(frozen=True)
class Family:
    """What sets a dense family apart."""

    interleaved_rope: bool = False
    qkv_bias: bool = False
    head_norms: bool = False


FAMILIES = {
    "llama": Family(interleaved_rope=True),
    "qwen2": Family(qkv_bias=True),
    "qwen3": Family(head_norms=True),
}

_LIMITS = {
    "block_count": 1024,
    "embedding_length": 65_536,
    "feed_forward_length": 1 << 20,
    "attention.head_count": 1024,
    "context_length": 1 << 24,
}


@dataclass(frozen=True)
class DenseConfig:
    """The sizes every kernel is made from. ``context`` is the most positions the model was made for."""

    architecture: str
    family: Family
    layers: int
    hidden: int
    inner: int
    vocab: int
    context: int
    heads: HeadShape
    rope_base: float
    epsilon: float
    tied: bool

    @property
    def qkv_rows(self) -> int:
        return (self.heads.heads + 2 * self.heads.kv_heads) * self.heads.size

    @property
    def attention_size(self) -> int:
        return self.heads.heads * self.heads.size


def read_config(file: GgufFile) -> DenseConfig:
    """Reads and checks a file's description; ModelError names what is missing, odd or unknown."""
    family = FAMILIES.get(file.architecture)
    if family is None:
        raise ModelError(
            f"Models of the family {file.architecture or 'without a name'} are not supported.",
            "Supported here: " + ", ".join(FAMILIES) + ".",
        )
    _refuse_rope_scaling(file)
    embedding = file.tensor("token_embd.weight")
    hidden = _size(file, "embedding_length")
    if embedding.columns != hidden:
        raise ModelError(f"The embedding is {embedding.columns} wide, the model {hidden}.", "Get another file.")
    heads = _heads(file, family, hidden)
    check_shape(heads)
    return DenseConfig(
        architecture=file.architecture,
        family=family,
        layers=_size(file, "block_count"),
        hidden=hidden,
        inner=_size(file, "feed_forward_length"),
        vocab=embedding.rows,
        context=_size(file, "context_length"),
        heads=heads,
        rope_base=_real(file, "rope.freq_base", 10_000.0),
        epsilon=_real(file, "attention.layer_norm_rms_epsilon", None),
        tied="output.weight" not in file.tensors,
    )


def _heads(file: GgufFile, family: Family, hidden: int) -> HeadShape:
    count = _size(file, "attention.head_count")
    kv_count = file.value("attention.head_count_kv", count)
    if not isinstance(kv_count, int) or not 1 <= kv_count <= count:
        raise ModelError(f"The model claims {kv_count} key heads for {count} query heads.", "Get another file.")
    size = file.value("attention.key_length", hidden // count)
    rotary = file.value("rope.dimension_count", size)
    if not isinstance(size, int) or not isinstance(rotary, int) or not 2 <= rotary <= size or rotary % 2:
        raise ModelError(f"Heads of size {size} cannot turn {rotary} values.", "Get another file.")
    if file.value("attention.value_length", size) != size:
        raise ModelError("Keys and values of different sizes are not supported.", "Pick another model.")
    epsilon = _real(file, "attention.layer_norm_rms_epsilon", None)
    return HeadShape(count, kv_count, size, rotary, family.interleaved_rope, epsilon)


def _size(file: GgufFile, key: str) -> int:
    value = file.value(key)
    if not isinstance(value, int) or not 1 <= value <= _LIMITS[key]:
        raise ModelError(f"The model's {key} is {value}.", "The file is damaged or of another kind; get another.")
    return value


def _real(file: GgufFile, key: str, default: float | None) -> float:
    value: Any = file.value(key, default)
    if not isinstance(value, int | float) or not 0 < value < 1e12:
        raise ModelError(f"The model's {key} is {value}.", "The file is damaged or of another kind; get another.")
    return float(value)


def _refuse_rope_scaling(file: GgufFile) -> None:
    kind = file.value("rope.scaling.type", "none")
    if kind not in ("none", ""):
        raise ModelError(f"Rotary scaling of type {kind} is not supported.", "Pick another model.")
