"""What is compared with the usual placement, and that nothing changes for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matvec import is_possible, usual_placement
from app.engine.placement import Epilogue, Job, Placement
from app.engine.programs import STEP_WIDTHS
from app.engine.tuning.search import candidates, quickest

CAPS = Caps(1 << 30, 1 << 30, 48 << 10, software=False, features=frozenset(), subgroup=32)
DOWN = Job(TensorType.Q4_0, 5120, 544, Epilogue.ADD, 1)
GATED = Job(TensorType.Q4_0, 34816, 160, Epilogue.SWIGLU, 1, rounded=True)
HEAD = Job(TensorType.Q6_K, 248320, 160, Epilogue.STORE, 1)


@pytest.mark.parametrize("width", STEP_WIDTHS)
@pytest.mark.parametrize("job", [DOWN, GATED, HEAD], ids=lambda job: job.epilogue.value)
def test_few_placements_are_compared_and_each_can_run(job: Job, width: int) -> None:
    job = replace(job, width=width)
    found = candidates(job, CAPS)
    assert found[0] == usual_placement(job, CAPS)
    assert 4 <= len(found) == len(set(found)) <= 11
    assert all(is_possible(placement, job, CAPS) for placement in found)


def test_they_differ_in_one_property_or_in_two_that_go_together() -> None:
    found = candidates(replace(DOWN, width=2), CAPS)
    usual = found[0]
    assert replace(usual, rows=2 * usual.rows) in found
    assert replace(usual, teams=usual.teams // 2, rows=2 * usual.rows) in found
    assert replace(usual, ahead=usual.ahead // 2) in found
    assert replace(usual, columns=1) in found


def test_rounding_on_the_way_is_compared_with_rounding_apart() -> None:
    assert {placement.fused for placement in candidates(GATED, CAPS)} == {True, False}
    heavy = replace(GATED, kind=TensorType.Q6_K, width=4)
    assert not usual_placement(heavy, CAPS).fused
    assert {placement.fused for placement in candidates(heavy, CAPS)} == {True, False}
    assert not any(placement.fused for placement in candidates(replace(GATED, rounded=False), CAPS))


def test_less_than_two_in_a_hundred_changes_nothing() -> None:
    usual, other = Placement(4, 1, 1), Placement(4, 2, 1)
    assert quickest({usual: 100, other: 98.5}) == usual
    assert quickest({usual: 100, other: 97, Placement(8, 1, 1): 99}) == other
    assert quickest({usual: 100, other: 130}) == usual
