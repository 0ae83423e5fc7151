"""Depth control: the first steps, every depth once, then the fastest, with looks at its neighbours."""

from collections import Counter
from collections.abc import Callable

import pytest

from app.engine.speculate import ALONE_DEPTHS, FIRST_DEPTH, PROBE_EVERY, SPLIT_DEPTHS, DepthControl


def run(control: DepthControl, steps: int, seconds: Callable[[int], float]) -> list[int]:
    """Depths taken; every step gives its depth in tokens and takes ``seconds(depth)``."""
    taken: list[int] = []
    for _ in range(steps):
        taken.append(control.depth)
        control.measured(taken[-1], taken[-1], seconds(taken[-1]))
    return taken


@pytest.mark.parametrize("depths", [SPLIT_DEPTHS, ALONE_DEPTHS], ids=len)
def test_it_begins_with_three_and_tries_every_other_depth_once(depths: tuple[int, ...]) -> None:
    taken = run(DepthControl(depths), 3 + len(depths) - 1, lambda _depth: 1.0)
    assert taken[:3] == [FIRST_DEPTH] * 3
    assert sorted(taken[3:]) == [depth for depth in depths if depth != FIRST_DEPTH]


@pytest.mark.parametrize("best", ALONE_DEPTHS)
def test_it_stays_with_the_fastest_and_looks_at_both_neighbours(best: int) -> None:
    taken = run(DepthControl(ALONE_DEPTHS), 40 * PROBE_EVERY, lambda depth: depth / (2.0 if depth == best else 1.0))
    counts = Counter(taken[len(ALONE_DEPTHS) + 3 :])
    assert counts.most_common(1)[0][0] == best
    at = ALONE_DEPTHS.index(best)
    beside = {ALONE_DEPTHS[i] for i in (at - 1, at + 1) if 0 <= i < len(ALONE_DEPTHS)}
    assert set(counts) == {best, *beside}
    assert all(counts[depth] >= 40 // len(beside) - 1 for depth in beside)


def test_a_depth_that_became_faster_is_found_again() -> None:
    control = DepthControl(SPLIT_DEPTHS)
    run(control, 100, lambda depth: depth / (2.0 if depth == 3 else 1.0))
    assert control.depth in (3, 5)
    taken = run(control, 300, lambda depth: depth / (3.0 if depth == 5 else 1.0))
    assert Counter(taken[-100:]).most_common(1)[0][0] == 5


def test_clipped_depths_and_impossible_times_teach_nothing() -> None:
    control = DepthControl(SPLIT_DEPTHS)
    for depth, seconds in ((2, 0.001), (3, 0.0), (1, 1.0)):
        control.measured(depth, 9, seconds)
    assert run(control, 5, lambda _depth: 1.0) == [3, 3, 3, 5, 7]
