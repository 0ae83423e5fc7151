"""What the planner keeps free on a device is enough for what the engine really allocates there."""

from app.core.units import GIB
from app.engine.gguf import GgufFile
from app.engine.options import Options, footprint
from app.engine.types import KvFormat, Part
from app.models.table import builtin_table
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
