"""The buffers a step works in: activations, caches, records and the selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.arch import Mixer, ModelConfig
from app.engine.memory import Buffers, Meter, Slice
from app.engine.ops.attention import partial_bytes, splits_within
from app.engine.ops.delta import DeltaState, state_bytes
from app.engine.ops.experts import ExpertBuffers, make_expert_buffers
from app.engine.ops.mask import words_of
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised, make_quantised
from app.engine.ops.rope import Cache, cache_bytes, scale_bytes
from app.engine.ops.select import SPACE_WORDS, Selection, scans_of
from app.engine.types import MAX_STOPS, STEP_COLUMNS, KvFormat, Part
from app.engine.weights.layout import stride

RECORD_WORDS = 8
KV_CACHE, RECURRENT = "KV cache", "recurrent state"


FIRST = 1
"""Flag of a run's first column, which alone says how many columns to replay and how many there are."""


@dataclass(frozen=True)
class Run:
    """Consecutive columns of one sequence. ``replay`` columns before them are not yet in its recurrent state.

    Without ``ids`` the run only replays; it still takes a column.
    """

    ids: Sequence[int]
    position: int
    sequence: int = 0
    replay: int = 0


@dataclass(frozen=True)
class DraftSpace:
    """``before`` are the trunk's states a position earlier, ``joined`` [embedding | state], ``cache`` the block's."""

    before: Activations
    joined: Activations
    cache: Cache


@dataclass(frozen=True)
class Workspace:
    """``columns`` is the widest prompt chunk. ``head`` buffers are there only where the part has the head.

    ``rounded`` are gated values that were made from ``quantised`` ones. ``states`` has a layer's caches or
    recurrent state, for each of ``sequences`` sequences.
    """

    columns: int
    context: int
    sequences: int
    records: Slice
    hidden: Activations
    normed: Activations
    qkv: Activations
    mixed: Activations | None
    attended: Activations
    gate_up: Activations
    inner: Activations
    quantised: Quantised
    rounded: Quantised
    experts: ExpertBuffers | None
    partial: Slice
    state: Slice
    states: tuple[Cache | DeltaState, ...]
    logits: Activations | None
    selection: Selection | None
    masks: Slice | None
    draft: DraftSpace | None


def make_workspace(
    buffers: Buffers, config: ModelConfig, part: Part, columns: int, context: int, kv: KvFormat, sequences: int = 1
) -> Workspace:
    """Allocates everything a part needs to run; OutOfMemory past the pledge."""

    def activations(size: int, rows: int = columns) -> Activations:
        return Activations(buffers.buffer(rows * stride(size) * 4, "scratch"), stride(size))

    partial, state = partial_bytes(config.heads, STEP_COLUMNS, splits_within(context))
    shared = config.experts.shared_inner if config.experts else 0
    inner = max(config.inner, shared, 1)
    recurrent = config.delta.inner if config.delta else 0
    return Workspace(
        columns=columns,
        context=context,
        sequences=sequences,
        records=buffers.buffer(columns * RECORD_WORDS * 4, "scratch"),
        hidden=activations(config.hidden),
        normed=activations(config.hidden),
        qkv=activations(config.heads.qkv_size),
        mixed=activations(config.delta.rows) if config.delta else None,
        attended=activations(max(config.attention_size, recurrent)),
        gate_up=activations(2 * inner),
        inner=activations(inner),
        quantised=make_quantised(buffers, max(config.hidden, config.attention_size, inner, recurrent), columns),
        rounded=make_quantised(buffers, inner, STEP_COLUMNS),
        experts=make_expert_buffers(buffers, config.experts, config.hidden, columns) if config.experts else None,
        partial=buffers.buffer(partial, "scratch"),
        state=buffers.buffer(state, "scratch"),
        states=tuple(
            _states(buffers, config, mixer, context, kv, sequences) for mixer in config.mixers[part.lo : part.hi]
        ),
        logits=activations(config.vocab, STEP_COLUMNS) if part.head else None,
        selection=_selection(buffers, config.vocab) if part.head else None,
        masks=buffers.buffer(STEP_COLUMNS * words_of(config.vocab) * 4, "scratch") if part.head else None,
        draft=_draft(buffers, config, columns, context * sequences, kv) if part.draft else None,
    )


def workspace_bytes(
    config: ModelConfig, part: Part, columns: int, context: int, kv: KvFormat, sequences: int = 1
) -> tuple[int, int]:
    """Bytes of the lasting state (caches and recurrent states) and of everything else."""
    meter = Meter()
    make_workspace(meter, config, part, columns, context, kv, sequences)
    totals = meter.by_purpose()
    return totals.get(KV_CACHE, 0) + totals.get(RECURRENT, 0), totals["scratch"]


def record_array(runs: Sequence[Run], width: int, context: int) -> np.ndarray:
    """[width, 8] records of the runs' columns, a sequence's keys ``context`` rows apart; padding is not live."""
    records = np.zeros((width, RECORD_WORDS), np.uint32)
    first = 0
    for run in runs:
        count = max(len(run.ids), 1)
        rows = records[first : first + count]
        rows[: len(run.ids), 0] = run.ids
        rows[:, 1] = np.arange(run.position, run.position + count)
        rows[:, 2], rows[:, 3], rows[:, 4] = run.sequence * context, run.sequence, 1
        rows[0, 5:] = FIRST, run.replay, len(run.ids)
        first += count
    return records


def _states(
    buffers: Buffers, config: ModelConfig, mixer: Mixer, context: int, kv: KvFormat, sequences: int
) -> Cache | DeltaState:
    if mixer is Mixer.ATTENTION:
        return _cache(buffers, config, context * sequences, kv)
    assert config.delta
    return DeltaState(*(buffers.buffer(size, RECURRENT) for size in state_bytes(config.delta, sequences)))


def _cache(buffers: Buffers, config: ModelConfig, rows: int, kv: KvFormat) -> Cache:
    size = cache_bytes(config.heads, rows, kv)
    keys, values = buffers.buffer(size, KV_CACHE), buffers.buffer(size, KV_CACHE)
    scales = buffers.buffer(scale_bytes(config.heads, rows), KV_CACHE) if kv is KvFormat.INT8 else None
    return Cache(keys, values, kind=kv, scales=scales)


def _draft(buffers: Buffers, config: ModelConfig, columns: int, rows: int, kv: KvFormat) -> DraftSpace:
    def activations(size: int) -> Activations:
        return Activations(buffers.buffer(columns * stride(size) * 4, "scratch"), stride(size))

    return DraftSpace(activations(config.hidden), activations(2 * config.hidden), _cache(buffers, config, rows, kv))


def _selection(buffers: Buffers, vocab: int) -> Selection:
    scans = STEP_COLUMNS * scans_of(vocab)
    sizes = scans * 32, scans * 64 * 4, STEP_COLUMNS * SPACE_WORDS * 4, (MAX_STOPS + 1) * 4
    return Selection(*(buffers.buffer(size, "scratch") for size in sizes))
