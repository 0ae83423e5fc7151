"""Bytes a model takes on the devices that share it (spec: rooms §12.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.engine.options import USUAL_LENGTH
from app.engine.types import STEP_COLUMNS, KvFormat
from app.models.table import ModelRecord, Recurrent

Q8_BLOCK = 32
FLOAT = 4
PAST = 3
"""Columns before a position that its convolution reads, in all published models."""
RING = 2 * STEP_COLUMNS + PAST
"""As ``DeltaShape.ring`` of the engine."""


@dataclass(frozen=True)
class Need:
    """What a whole model takes: ``layer_bytes`` a layer with its KV, ``host_bytes`` once on the model host.

    ``reserve`` is scratch and tables every device that holds layers keeps inside its pledge.
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


def recurrent_bytes(record: ModelRecord) -> int:
    """State of one recurrent layer: its matrix, and the columns of steps that may still be taken back."""
    shape = record.recurrent
    if shape is None:
        return 0
    return _matrix_bytes(shape) + RING * (_channels(shape) + 2 * shape.value_heads) * FLOAT


def _matrix_bytes(shape: Recurrent) -> int:
    return shape.inner * shape.state * FLOAT


def _channels(shape: Recurrent) -> int:
    return 2 * shape.groups * shape.state + shape.inner


def layer_bytes(record: ModelRecord, context: int, kv: str, *, published: bool = False) -> float:
    """Bytes of one layer with the keys and values of ``context`` positions, and its share of recurrent state."""
    rows = context * kv_layer_position(record, kv, published=published)
    state = 0.0 if published else recurrent_bytes(record) * _recurrent_share(record)
    return record.layer_bytes + rows + state


def _recurrent_share(record: ModelRecord) -> float:
    return 1 - 1 / record.attention_interval if record.recurrent else 0.0


def draft_rows_bytes(record: ModelRecord, positions: int, kv: str) -> int:
    """Keys and values of the draft block, which attends as one layer does."""
    attending = kv_layer_position(record, kv) * record.attention_interval
    return math.ceil(positions * attending) if record.draft_bytes else 0


def saved_layer_bytes(record: ModelRecord, positions: int, kv: str) -> float:
    """A layer's share of one saved state of a hybrid. None is counted for dense models, which go back without one:
    parked conversations take what memory is left."""
    shape = record.recurrent
    if shape is None:
        return 0.0
    state = _matrix_bytes(shape) + PAST * _channels(shape) * FLOAT
    return positions * kv_layer_position(record, kv) + state * _recurrent_share(record)


def host_bytes(record: ModelRecord, context: int, kv: str, *, published: bool = False) -> int:
    """Embedding, head with its logits, and draft block with its rows.

    ``published``: with the second copy of the embedding that a head or a draft block brings there.
    """
    if published:
        drafts = record.draft_bytes + record.embed_bytes if record.draft_bytes else 0
        return record.embed_bytes + (record.output_bytes or record.embed_bytes) + drafts
    drafts = record.draft_bytes + draft_rows_bytes(record, context, kv)
    logits = STEP_COLUMNS * record.vocab * FLOAT
    return record.embed_bytes + record.output_bytes + logits + drafts


def need(record: ModelRecord, context: int, kv: str, *, published: bool = False, kept: int = 0) -> Need:
    """``kept`` saved states are counted, too, each of a usual length.

    ``published``: without scratch and recurrent state, and with 32-bit dense caches, as the published planner counts.
    """
    usual = min(context, USUAL_LENGTH)
    layer, saved = layer_bytes(record, context, kv, published=published), saved_layer_bytes(record, usual, kv)
    host, saved_host = host_bytes(record, context, kv, published=published), draft_rows_bytes(record, usual, kv)
    return Need(
        layers=record.layers,
        layer_bytes=layer + kept * saved,
        host_bytes=host + kept * saved_host,
        reserve=0 if published else record.scratch_bytes + context * record.head_dim * FLOAT,
    )


def resident_bytes(record: ModelRecord, context: int) -> int:
    """All a whole model takes on one device with ``context`` positions, or as many as it was made for."""
    needed = need(record, min(context, record.trained_context), kv_word(record, None))
    return math.ceil(needed.total) + needed.reserve
