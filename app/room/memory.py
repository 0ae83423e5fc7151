"""Bytes a model takes on the devices that share it (spec: rooms §12.1)."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.types import KvFormat
from app.models.table import ModelRecord

Q8_BLOCK = 32


@dataclass(frozen=True)
class Need:
    """What a whole model takes: ``layer_bytes`` a layer with its KV, ``host_bytes`` once on the model host.

    ``reserve`` is scratch and state every device that holds layers keeps inside its pledge.
    """

    layers: int
    layer_bytes: float
    host_bytes: int
    reserve: int = 0

    @property
    def total(self) -> float:
        return self.layers * self.layer_bytes + self.host_bytes


def kv_word(record: ModelRecord, asked: str | None) -> str:
    """How a room says it keeps keys and values; only hybrids have the int8 form."""
    return "q8" if asked == "q8" and record.hybrid else "f16"


def kv_format(record: ModelRecord, word: str) -> KvFormat | None:
    """The engine's format of a room's word; None for one this model has no kernels for. "f32" is for tests."""
    if record.hybrid:
        return {"f16": KvFormat.F16, "q8": KvFormat.INT8}.get(word)
    return {"f16": KvFormat.F16, "f32": KvFormat.F32}.get(word)


def kv_layer_position(record: ModelRecord, kv: str, *, published: bool = False) -> float:
    """KV bytes of one position, averaged over all layers.

    ``published``: as the published planner counts, whose dense engine keeps 32-bit rows whatever the word.
    """
    per = record.kv_heads * record.head_dim
    if not record.hybrid:
        return 2 * per * (4 if published else 2)
    one = per + per / Q8_BLOCK * 4 if kv == "q8" else 2 * per
    return one * 2 / record.attention_interval


def kv_buffer_position(record: ModelRecord, kv: str, *, published: bool = False) -> int:
    """Bytes of one position in the largest single KV buffer of an attention layer."""
    per = record.kv_heads * record.head_dim
    if not record.hybrid:
        return per * (4 if published else 2)
    return per if kv == "q8" else 2 * per


def layer_bytes(record: ModelRecord, context: int, kv: str, *, published: bool = False) -> float:
    """Bytes of one layer with the keys and values of ``context`` positions."""
    return record.layer_bytes + context * kv_layer_position(record, kv, published=published)


def host_bytes(record: ModelRecord) -> int:
    """Embedding, head and draft block; a draft block brings a second copy of the embedding."""
    drafts = record.draft_bytes + record.embed_bytes if record.draft_bytes else 0
    return record.embed_bytes + (record.output_bytes or record.embed_bytes) + drafts


def need(record: ModelRecord, context: int, kv: str, *, published: bool = False) -> Need:
    """``published``: without scratch and with 32-bit dense caches, as the published planner counts."""
    return Need(
        layers=record.layers,
        layer_bytes=layer_bytes(record, context, kv, published=published),
        host_bytes=host_bytes(record),
        reserve=0 if published else record.scratch_bytes,
    )
