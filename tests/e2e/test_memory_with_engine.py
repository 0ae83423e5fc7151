"""What a deal counts on a device is what the engine there allocates: never less, and little more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from app.engine.arch import Mixer, read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options
from app.engine.snapshots import PURPOSE
from app.engine.types import ColumnClass, Part
from app.engine.workspace import KV_CACHE, RECURRENT
from app.models.table import ModelRecord
from app.room.memory import draft_rows_bytes, kv_format, kv_layer_position, need, recurrent_bytes, saved_layer_bytes
from tests.e2e.rooms import record_of

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
CONTEXT, SAVED, KEPT = 512, 256, 3
IDS = [int(i) for i in np.random.default_rng(4).integers(2, 1000, SAVED)]
TINY = [
    ("tiny-qwen3", "f16"),
    ("tiny-qwen35", "f16"),
    ("tiny-qwen35", "q8"),
    ("tiny-qwen35moe", "f16"),
    ("tiny-qwen35moe", "q8"),
]
"""Dense without, hybrids with a draft block."""


@dataclass(frozen=True)
class Loaded:
    """One model on one device, with saved states, and what was allocated for what."""

    record: ModelRecord
    kv: str
    recurrent_layers: int
    allocated: dict[str, int]


@pytest.fixture(scope="module")
def gpu() -> Iterator[Gpu]:
    gpu = Gpu.open()
    yield gpu
    gpu.close()


@pytest.fixture(params=TINY, ids=" ".join)
def loaded(gpu: Gpu, request: pytest.FixtureRequest) -> Loaded:
    name, kv = request.param
    path = GOLDEN / f"{name}.gguf"
    file, record = GgufFile.open(path), record_of(path)
    config, kind = read_config(file), kv_format(record, kv)
    assert config.drafts == record.hybrid
    assert kind is not None
    part = Part(0, config.layers, embed=True, head=True, draft=config.drafts)
    engine = Engine.load(gpu, file, part, Options(CONTEXT, 1 << 30, kind))
    engine.tokens(IDS, 0, ColumnClass.PROMPT)
    if record.hybrid:
        for i in range(KEPT):
            engine.save(str(i))
    allocated = engine.allocator.by_purpose()
    engine.close()
    return Loaded(record, kv, config.mixers.count(Mixer.DELTA), allocated)


def test_every_purpose_takes_what_was_counted(loaded: Loaded) -> None:
    record, kv, allocated = loaded.record, loaded.kv, loaded.allocated
    assert 4 * loaded.recurrent_layers == 3 * record.layers * record.hybrid
    rows = CONTEXT * kv_layer_position(record, kv) * record.layers + draft_rows_bytes(record, CONTEXT, kv)
    assert allocated[KV_CACHE] == rows
    assert allocated.get(RECURRENT, 0) == pytest.approx(loaded.recurrent_layers * recurrent_bytes(record), rel=0.02)
    if record.hybrid:
        state = record.layers * saved_layer_bytes(record, SAVED, kv) + draft_rows_bytes(record, SAVED, kv)
        assert allocated[PURPOSE] == pytest.approx(KEPT * state, rel=0.02)


def test_a_deal_covers_all_of_it(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.room.memory.USUAL_LENGTH", SAVED)
    needed = need(loaded.record, CONTEXT, loaded.kv, kept=KEPT)
    lasting = sum(loaded.allocated.values()) - loaded.allocated["scratch"] - loaded.allocated.get("readback", 0)
    assert 0.85 * needed.total <= lasting <= needed.total + needed.reserve, (loaded.allocated, needed)
    assert sum(loaded.allocated.values()) <= needed.total + needed.reserve
