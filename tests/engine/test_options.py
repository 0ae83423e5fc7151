"""What a part is loaded with: as much as the pledge has room for, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.arch import read_config
from app.engine.gguf import GgufFile
from app.engine.ops.rope import cache_bytes
from app.engine.options import HEADROOM, MOST_SEQUENCES, SAVED_STATES, Options, footprint, roomiest
from app.engine.types import KvFormat, Part
from tests.golden import DATA

BINDING = 1 << 30
NAMES = ("tiny-qwen3", "tiny-qwen35moe")


@pytest.fixture(params=NAMES)
def file(request: pytest.FixtureRequest) -> GgufFile:
    return GgufFile.open(DATA / f"{request.param}.gguf")


def whole(file: GgufFile) -> Part:
    return Part(0, read_config(file).layers, embed=True, head=True)


def pledged(file: GgufFile, sequences: int, more: int = 0) -> Options:
    """Options whose pledge has just enough room for so many sequences, their saved states, and ``more`` bytes."""
    options = Options(512, 0, KvFormat.F16)
    total = footprint(file, whole(file), replace(options, sequences=sequences), BINDING).total
    saved = SAVED_STATES * footprint(file, whole(file), options, BINDING).caches
    return replace(options, pledge=int(total * HEADROOM) + saved + 1 + more)


@pytest.mark.parametrize("sequences", range(1, MOST_SEQUENCES + 1))
def test_a_whole_model_keeps_as_many_conversations_as_there_is_room_for(file: GgufFile, sequences: int) -> None:
    options = pledged(file, sequences)
    assert roomiest(file, whole(file), options, BINDING) == replace(options, sequences=sequences)
    less = replace(options, pledge=options.pledge - 1024)
    assert roomiest(file, whole(file), less, BINDING).sequences == max(1, sequences - 1)


def test_nobody_needs_more_than_four(file: GgufFile) -> None:
    assert roomiest(file, whole(file), pledged(file, 9), BINDING).sequences == MOST_SEQUENCES


def test_a_share_of_a_model_keeps_one(file: GgufFile) -> None:
    options = pledged(file, 9)
    for part in (replace(whole(file), hi=1), replace(whole(file), head=False), replace(whole(file), lo=1, embed=False)):
        assert roomiest(file, part, options, BINDING) == options


def test_the_conversations_of_a_layer_fit_one_buffer(file: GgufFile) -> None:
    """Some drivers allow small ones only."""
    rows = cache_bytes(read_config(file).heads, 1, KvFormat.F16)
    options = replace(pledged(file, 9), context=1024 * 16)
    large = replace(options, pledge=1 << 40)
    binding = 2 * rows * large.context
    assert roomiest(file, whole(file), large, binding).sequences == 2
