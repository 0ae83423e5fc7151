"""Usual placements: what was quickest on the card they come from, and only what a device can run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matvec import is_possible, usual_placement
from app.engine.placement import Epilogue, Job, Placement

CAPS = Caps(1 << 30, 1 << 30, 48 << 10, software=False, features=frozenset(), subgroup=32)
DOWN = Job(TensorType.Q4_0, 5120, 544, Epilogue.ADD, 1)
MIXED = Job(TensorType.Q4_0, 16480, 160, Epilogue.STORE, 1)
HEAD = Job(TensorType.Q6_K, 248320, 160, Epilogue.STORE, 1)
OUTPUT = Job(TensorType.Q4_0, 5120, 192, Epilogue.ADD, 1)
SHORT = Job(TensorType.Q4_0, 4096, 64, Epilogue.STORE, 1)
GATED = Job(TensorType.Q4_0, 34816, 160, Epilogue.SWIGLU, 1, rounded=True)


@pytest.mark.parametrize(
    ("job", "one", "two", "four"),
    [
        (DOWN, Placement(4, 1, 1), Placement(4, 2, 2, 8), Placement(4, 4, 4, 2)),
        (MIXED, Placement(4, 2, 1), Placement(2, 4, 2, 4), Placement(8, 8, 4)),
        (HEAD, Placement(4, 2, 1), Placement(4, 4, 2), Placement(4, 2, 4)),
        (OUTPUT, Placement(2, 2, 1), Placement(2, 4, 2, 2), Placement(2, 4, 4, 2)),
        (SHORT, Placement(4, 1, 1), Placement(4, 1, 2), Placement(4, 2, 4)),
        (GATED, Placement(8, 4, 1, fused=True), Placement(8, 4, 2, 2, fused=True), Placement(8, 4, 4, fused=True)),
    ],
    ids=["down", "mixed", "head", "output", "short", "gated"],
)
def test_more_columns_take_more_rows_a_team(job: Job, one: Placement, two: Placement, four: Placement) -> None:
    for width, expected in ((1, one), (2, two), (4, four)):
        assert usual_placement(replace(job, width=width), CAPS) == expected


@pytest.mark.parametrize("subgroup", [0, 4, 16, 32, 64])
@pytest.mark.parametrize("shared", [16 << 10, 48 << 10])
def test_every_device_can_run_them(subgroup: int, shared: int) -> None:
    caps = replace(CAPS, subgroup=subgroup, shared=shared)
    shapes = product((32, 64, 2048, 5120, 20000), (1, 3, 64, 130, 192, 544), Epilogue, range(1, 17))
    for kind, (rows, units, epilogue, width) in product((TensorType.Q4_0, TensorType.Q6_K), shapes):
        job = Job(kind, rows, units, epilogue, width, rounded=epilogue is Epilogue.SWIGLU)
        assert is_possible(usual_placement(job, caps), job, caps), job


def test_software_adapters_keep_one_shape_and_round_apart() -> None:
    caps = replace(CAPS, software=True)
    assert {usual_placement(replace(DOWN, width=w), caps) for w in (1, 2, 4)} == {Placement(4, 4, w) for w in (1, 2, 4)}
    assert not usual_placement(GATED, caps).fused
