"""A file's description, read and checked (spec: engine §1.6, oracles §4)."""

from __future__ import annotations

from typing import Any

from app.core.errors import ModelError
from app.engine.arch.config import Mixer, ModelConfig
from app.engine.arch.families import FAMILIES, Family
from app.engine.gguf import GgufFile
from app.engine.ops import attention, delta, experts
from app.engine.ops.delta import DeltaShape
from app.engine.ops.experts import ExpertShape
from app.engine.ops.rope import HeadShape

_MOST = 1 << 24
_MOST_LAYERS = 1024
_DEFAULT_INTERVAL = 4
_SOFTMAX = 1
"""llama.cpp's number for routing by softmax."""


def read_config(file: GgufFile) -> ModelConfig:
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
    mixers = _mixers(file, family)
    return ModelConfig(
        architecture=file.architecture,
        family=family,
        mixers=mixers,
        hidden=hidden,
        inner=0 if family.experts else _size(file, "feed_forward_length"),
        vocab=embedding.rows,
        context=_size(file, "context_length"),
        heads=_heads(file, family, hidden),
        delta=_delta(file) if family.hybrid else None,
        experts=_experts(file, family) if family.experts else None,
        rope_base=_real(file, "rope.freq_base", 10_000.0),
        epsilon=_real(file, "attention.layer_norm_rms_epsilon", None),
        tied="output.weight" not in file.tensors,
        drafts=f"blk.{len(mixers)}.nextn.eh_proj.weight" in file.tensors,
    )


def _mixers(file: GgufFile, family: Family) -> tuple[Mixer, ...]:
    blocks = _size(file, "block_count", most=_MOST_LAYERS)
    drafts = file.value("nextn_predict_layers", 0)
    if not isinstance(drafts, int) or not 0 <= drafts <= 1 or drafts >= blocks:
        raise ModelError(f"The model claims {drafts} draft blocks; one is supported.", "Pick another model.")
    layers = blocks - drafts
    if not family.hybrid:
        return (Mixer.ATTENTION,) * layers
    recurrent: Any = file.value("attention.recurrent_layers")
    if recurrent is not None:
        if not isinstance(recurrent, list) or len(recurrent) < layers or not set(recurrent) <= {False, True}:  # pyright: ignore[reportUnknownArgumentType]
            raise ModelError("The model's list of recurrent layers does not fit its layers.", "Get another file.")
        return tuple(Mixer.DELTA if r else Mixer.ATTENTION for r in recurrent[:layers])  # pyright: ignore[reportUnknownVariableType]
    interval = _size(file, "full_attention_interval", default=_DEFAULT_INTERVAL)
    return tuple(Mixer.DELTA if (i + 1) % interval else Mixer.ATTENTION for i in range(layers))


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
    shape = HeadShape(count, kv_count, size, rotary, family.interleaved_rope, epsilon, gated=family.hybrid)
    attention.check_shape(shape)
    return shape


def _delta(file: GgufFile) -> DeltaShape:
    value_heads, size = _size(file, "ssm.time_step_rank"), _size(file, "ssm.state_size")
    if _size(file, "ssm.inner_size") != value_heads * size:
        raise ModelError("DeltaNet keys and values of different sizes are not supported.", "Pick another model.")
    shape = DeltaShape(
        key_heads=_size(file, "ssm.group_count"),
        value_heads=value_heads,
        size=size,
        taps=_size(file, "ssm.conv_kernel"),
        epsilon=_real(file, "attention.layer_norm_rms_epsilon", None),
    )
    delta.check_shape(shape)
    return shape


def _experts(file: GgufFile, family: Family) -> ExpertShape:
    shared = file.value("expert_shared_feed_forward_length", 0) if family.hybrid else 0
    if not isinstance(shared, int) or shared < 0:
        raise ModelError(f"The model's shared expert is {shared} wide.", "Get another file.")
    scale, gating = file.value("expert_weights_scale", 1.0), file.value("expert_gating_func", _SOFTMAX)
    if scale not in (0, 1) or gating not in (0, _SOFTMAX):
        raise ModelError("Experts that are weighted in another way are not supported.", "Pick another model.")
    shape = ExpertShape(
        count=_size(file, "expert_count"),
        used=_size(file, "expert_used_count"),
        inner=_size(file, "expert_feed_forward_length"),
        shared_inner=shared,
        normalised=bool(file.value("expert_weights_norm", True)),
    )
    experts.check_shape(shape)
    return shape


def _size(file: GgufFile, key: str, *, default: int | None = None, most: int = _MOST) -> int:
    value = file.value(key, default)
    if not isinstance(value, int) or not 1 <= value <= most:
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
