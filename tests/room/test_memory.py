"""What planning counts of caches and states is what the engine's description says (spec: engine §1.8)."""

from __future__ import annotations

import pytest

from app.models.table import builtin_table
from app.room.memory import (
    draft_rows_bytes,
    kv_layer_position,
    need,
    recurrent_bytes,
    resident_bytes,
    saved_layer_bytes,
)

GROWING = {
    ("qwen3-1.7b", "f16"): 114_688,
    ("qwen3.8-27b", "f16"): 65_536,
    ("qwen3.6-35b-moe", "f16"): 20_480,
    ("qwen3.5-122b-moe", "f16"): 24_576,
    ("qwen3.8-27b", "q8"): 36_864,
    ("qwen3.6-35b-moe", "q8"): 11_520,
}
"""Bytes of one position of the whole model."""
MATRICES = {"qwen3.8-27b": 3_145_728, "qwen3.6-35b-moe": 2_097_152, "qwen3.5-122b-moe": 4_194_304}


@pytest.mark.parametrize(("key", "kv"), GROWING, ids=str)
def test_bytes_of_a_position(key: str, kv: str) -> None:
    record = builtin_table().get(key)
    assert record.layers * kv_layer_position(record, kv) == GROWING[key, kv]
    longer = need(record, 4096 + 256, kv).total - need(record, 4096, kv).total
    drafted = draft_rows_bytes(record, 256, kv)
    assert longer == pytest.approx(256 * GROWING[key, kv] + drafted)
    attending = record.layers // record.attention_interval
    assert drafted == (256 * GROWING[key, kv] // attending if record.draft_bytes else 0)


@pytest.mark.parametrize("key", MATRICES)
def test_bytes_of_a_recurrent_layer_and_of_a_saved_state(key: str) -> None:
    """A saved state leaves out the columns that could be taken back."""
    record = builtin_table().get(key)
    matrix, layers = MATRICES[key], record.layers * 3 // 4
    assert matrix < recurrent_bytes(record) < 1.6 * matrix
    state = record.layers * saved_layer_bytes(record, 0, "f16")
    assert layers * matrix < state < 1.06 * layers * matrix


def test_a_saved_state_of_a_thousand_words() -> None:
    record = builtin_table().get("qwen3.8-27b")
    assert record.layers * saved_layer_bytes(record, 1000, "f16") == pytest.approx(215e6, rel=0.05)


def test_dense_models_save_nothing_and_hold_the_embedding_once() -> None:
    record = builtin_table().get("qwen3-0.6b")
    assert need(record, 2048, "f16", kept=5) == need(record, 2048, "f16")
    assert need(record, 2048, "f16").host_bytes == record.embed_bytes + 16 * record.vocab * 4
    assert resident_bytes(record, 2048) == pytest.approx(record.download_bytes + 2048 * 114_688, rel=0.1)
    assert resident_bytes(record, 1 << 20) == resident_bytes(record, record.trained_context)
