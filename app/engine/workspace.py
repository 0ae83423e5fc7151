"""The buffers a step works in: activations, caches, records and the selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.engine.arch import DenseConfig
from app.engine.memory import Allocator, Slice, aligned
from app.engine.model import stride
from app.engine.ops.attention import partial_bytes, splits_within
from app.engine.ops.matvec import Activations
from app.engine.ops.rope import Cache, cache_bytes
from app.engine.ops.select import MAX_STOPS, SPACE_WORDS, Selection, scans_of
from app.engine.types import KvFormat, Part

STEP_COLUMNS = 16
RECORD_WORDS = 8


@dataclass(frozen=True)
class Workspace:
    """``columns`` is the widest prompt chunk. ``head`` buffers are there only where the part has the head."""

    columns: int
    context: int
    records: Slice
    hidden: Activations
    normed: Activations
    qkv: Activations
    attended: Activations
    gate_up: Activations
    inner: Activations
    partial: Slice
    state: Slice
    caches: tuple[Cache, ...]
    logits: Activations | None
    selection: Selection | None


def make_workspace(
    allocator: Allocator, config: DenseConfig, part: Part, columns: int, context: int, kv: KvFormat
) -> Workspace:
    """Allocates everything a part needs to run; OutOfMemory past the pledge."""

    def activations(size: int, rows: int = columns) -> Activations:
        return Activations(allocator.buffer(rows * stride(size) * 4, "scratch"), stride(size))

    partial, state = partial_bytes(config.heads, STEP_COLUMNS, splits_within(context))
    return Workspace(
        columns=columns,
        context=context,
        records=allocator.buffer(columns * RECORD_WORDS * 4, "scratch"),
        hidden=activations(config.hidden),
        normed=activations(config.hidden),
        qkv=activations(config.qkv_rows),
        attended=activations(config.attention_size),
        gate_up=activations(2 * config.inner),
        inner=activations(config.inner),
        partial=allocator.buffer(partial, "scratch"),
        state=allocator.buffer(state, "scratch"),
        caches=tuple(_cache(allocator, config, context, kv) for _ in range(part.layers)),
        logits=activations(config.vocab, STEP_COLUMNS) if part.head else None,
        selection=_selection(allocator, config.vocab) if part.head else None,
    )


def workspace_bytes(config: DenseConfig, part: Part, columns: int, context: int, kv: KvFormat) -> tuple[int, int]:
    """Bytes of the caches and of everything else, as ``make_workspace`` will allocate them."""
    caches = 2 * part.layers * _buffer(cache_bytes(config.heads, context, kv))
    partial, state = partial_bytes(config.heads, STEP_COLUMNS, splits_within(context))
    widths = (
        config.hidden, config.hidden, config.qkv_rows, config.attention_size, 2 * config.inner, config.inner,
    )  # fmt: skip
    scratch = _buffer(columns * RECORD_WORDS * 4) + _buffer(partial) + _buffer(state)
    scratch += sum(_buffer(columns * stride(width) * 4) for width in widths)
    if part.head:
        scratch += _buffer(STEP_COLUMNS * stride(config.vocab) * 4) + sum(map(_buffer, _selection_sizes(config.vocab)))
    return caches, scratch


def record_array(tokens: list[int], position: int, width: int) -> np.ndarray:
    """[width, 8] records of consecutive columns; those past the tokens are not live."""
    records = np.zeros((width, RECORD_WORDS), np.uint32)
    count = len(tokens)
    records[:count, 0] = tokens
    records[:count, 1] = np.arange(position, position + count)
    records[:count, 4] = 1
    return records


def _buffer(size: int) -> int:
    return aligned(max(size, 1))


def _cache(allocator: Allocator, config: DenseConfig, context: int, kv: KvFormat) -> Cache:
    size = cache_bytes(config.heads, context, kv)
    return Cache(allocator.buffer(size, "KV cache"), allocator.buffer(size, "KV cache"), kv)


def _selection_sizes(vocab: int) -> tuple[int, int, int, int]:
    scans = STEP_COLUMNS * scans_of(vocab)
    return scans * 32, scans * 64 * 4, STEP_COLUMNS * SPACE_WORDS * 4, (MAX_STOPS + 1) * 4


def _selection(allocator: Allocator, vocab: int) -> Selection:
    scans, maxima, result, stops = (allocator.buffer(size, "scratch") for size in _selection_sizes(vocab))
    return Selection(scans, maxima, result, stops)
