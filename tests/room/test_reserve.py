"""What the planner keeps free on a device is enough for what the engine really allocates there."""

import pytest

from app.core.units import GIB
from app.engine.arch import FAMILIES, Mixer, ModelConfig
from app.engine.gguf import GgufFile
from app.engine.ops.delta import DeltaShape
from app.engine.ops.experts import ExpertShape
from app.engine.ops.rope import HeadShape
from app.engine.options import SPARE, USUAL, Options, footprint
from app.engine.types import KvFormat, Part
from app.engine.workspace import workspace_bytes
from app.models.table import ModelRecord, builtin_table
from app.room.memory import need
from tests.starter import starter_model


def test_a_deal_of_the_starter_covers_its_engine() -> None:
    record, file = builtin_table().get("smollm2-135m-q4_1"), GgufFile.open(starter_model())
    assert record.contexts
    context = record.contexts.maximum
    planned = need(record, context, "f16")
    for part in (Part(0, 30, embed=True, head=True), Part(0, 15, embed=True, head=True), Part(15, 30)):
        real = footprint(file, part, Options(context, 8 * GIB, KvFormat.F16), 1 << 27)
        dealt = part.layers * planned.layer_bytes + (planned.host_bytes if part.head else 0) + planned.reserve
        rope = context * 64 * 4
        assert real.total + rope <= dealt


INNER = {"qwen3-0.6b": 3072, "qwen3-1.7b": 6144, "qwen3-4b": 9728, "qwen3.8-27b": 17408}


@pytest.mark.parametrize("record", builtin_table().models, ids=lambda record: record.key)
def test_every_model_s_reserve_covers_the_scratch_of_its_shape(record: ModelRecord) -> None:
    """Chunks of the usual width, with the table of angles and two chunks on their way back (spec: engine §1.7)."""
    context = record.contexts.maximum if record.contexts else record.trained_context
    config, needed = _config(record), need(record, context, "f16")
    host = Part(0, record.layers, embed=True, head=True, draft=record.draft_bytes > 0)
    besides = context * config.heads.rotary * 4 + 2 * USUAL * record.hidden * 4 + SPARE
    caches, scratch = workspace_bytes(config, host, USUAL, context, KvFormat.F16)
    weights = record.layers * record.layer_bytes + record.embed_bytes + record.output_bytes + record.draft_bytes
    assert weights + caches + scratch + besides <= needed.total + needed.reserve
    worker = workspace_bytes(config, Part(0, record.layers), USUAL, context, KvFormat.F16)
    assert worker[1] + besides <= needed.reserve
    assert worker[0] == pytest.approx(record.layers * (needed.layer_bytes - record.layer_bytes), rel=1e-3)


def _config(record: ModelRecord) -> ModelConfig:
    family, shape, experts = FAMILIES[record.family], record.recurrent, record.experts
    rotary = 64 if record.hybrid else record.head_dim
    heads = HeadShape(
        record.heads, record.kv_heads, record.head_dim, rotary, family.interleaved_rope, 1e-6, gated=family.hybrid
    )
    delta = DeltaShape(shape.groups, shape.value_heads, shape.state, 4, 1e-6) if shape else None
    mixture = ExpertShape(experts.count, experts.used, experts.width, experts.width, False) if experts else None
    mixers = [Mixer.DELTA if (i + 1) % record.attention_interval else Mixer.ATTENTION for i in range(record.layers)]
    return ModelConfig(
        record.family, family, tuple(mixers), record.hidden, INNER.get(record.key, 1536), record.vocab,
        record.trained_context, heads, delta, mixture, 1e6, 1e-6, record.tied, record.draft_bytes > 0,
    )  # fmt: skip
