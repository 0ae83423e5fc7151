"""Depth control under a virtual clock: every depth once, then the fastest, and what looking for others costs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from app.engine.speculate import (
    ALONE_DEPTHS,
    FIRST_DEPTH,
    LONGEST_WAIT,
    PROBE_EVERY,
    SPLIT_DEPTHS,
    DepthControl,
    RightShares,
)

MOST = 15
Cost = Callable[[int], float]


def cheap(depth: int) -> float:
    """Seconds of a step between devices: the way takes most of it."""
    return 1 + 0.05 * depth


def dear(depth: int) -> float:
    """Seconds of a step on one device with a draft model of a third its size."""
    return 1 + 0.35 * depth


class Room:
    """Steps of a model whose drafts are right at a rate; ``seconds`` and ``tokens`` add up."""

    def __init__(self, depths: tuple[int, ...], cost: Cost) -> None:
        self.control = DepthControl(depths)
        self.seconds = 0.0
        self.tokens = 0
        self._cost = cost
        self._dice = random.Random(11)

    def run(self, steps: int, right: float) -> list[int]:
        """The depths taken."""
        taken: list[int] = []
        for _ in range(steps):
            taken.append(self.control.depth(MOST))
            accepted = 0
            while accepted < taken[-1] and self._dice.random() < right:
                accepted += 1
            self.control.measured(taken[-1], accepted + 1, self._cost(taken[-1]))
            self.seconds += self._cost(taken[-1])
            self.tokens += accepted + 1
        return taken


def expected(depth: int, right: float, cost: Cost) -> float:
    """Tokens a second."""
    return sum(right**n for n in range(depth + 1)) / cost(depth)


DEPTHS = pytest.mark.parametrize("depths", [SPLIT_DEPTHS, ALONE_DEPTHS], ids=["split", "alone"])
COSTS = pytest.mark.parametrize("cost", [cheap, dear], ids=lambda cost: cost.__name__)


@DEPTHS
def test_it_begins_with_three_and_tries_every_other_depth_once(depths: tuple[int, ...]) -> None:
    taken = Room(depths, cheap).run(3 + len(depths) - 1, 0.5)
    assert taken[:3] == [FIRST_DEPTH] * 3
    assert sorted(taken[3:]) == [depth for depth in depths if depth != FIRST_DEPTH]
    assert depths[0] == 0


@DEPTHS
@COSTS
def test_where_no_draft_is_right_it_settles_at_none_and_probes_cost_little(depths: tuple[int, ...], cost: Cost) -> None:
    room = Room(depths, cost)
    room.run(3 + len(depths) - 1, 0.0)
    room.seconds = 0.0
    taken = room.run(1000, 0.0)
    plain = 1000 * cost(0)
    assert (room.seconds - plain) / room.seconds < 0.05
    probes = Counter(taken)
    assert set(probes) == {0, depths[1]}
    assert 1000 // LONGEST_WAIT <= probes[depths[1]] < 1000 // PROBE_EVERY


@DEPTHS
@COSTS
@pytest.mark.parametrize("right", [0.3, 0.5, 0.8, 0.95])
def test_it_comes_close_to_the_best_there_is(depths: tuple[int, ...], cost: Cost, right: float) -> None:
    room = Room(depths, cost)
    taken = Counter(room.run(2000, right))
    speeds = {depth: expected(depth, right, cost) for depth in depths}
    best = max(speeds.values())
    assert room.tokens / room.seconds > 0.95 * best
    assert speeds[taken.most_common(1)[0][0]] > 0.95 * best


@DEPTHS
@COSTS
def test_it_comes_back_from_none_when_drafts_are_right_again(depths: tuple[int, ...], cost: Cost) -> None:
    room = Room(depths, cost)
    assert Counter(room.run(500, 0.0)[-100:]).most_common(1)[0][0] == 0
    taken = room.run(400, 0.8)
    back = next(i for i, depth in enumerate(taken) if depth)
    assert back <= LONGEST_WAIT
    after = taken[3 * LONGEST_WAIT :]
    assert after.count(0) < len(after) // 10


def test_it_looks_at_both_neighbours() -> None:
    room = Room(ALONE_DEPTHS, dear)
    room.run(8, 1.0)
    best = room.control.depth(MOST)
    taken = Counter(room.run(20 * PROBE_EVERY, 1.0))
    at = ALONE_DEPTHS.index(best)
    assert {ALONE_DEPTHS[i] for i in (at - 1, at + 1) if 0 <= i < len(ALONE_DEPTHS)} <= set(taken)


def test_a_depth_whose_steps_became_faster_is_found_again() -> None:
    control = DepthControl(SPLIT_DEPTHS)

    def run(steps: int, fast: int) -> Counter[int]:
        taken: list[int] = []
        for _ in range(steps):
            taken.append(control.depth(MOST))
            control.measured(taken[-1], taken[-1] + 1, 1.0 if taken[-1] == fast else 4.0)
        return Counter(taken)

    assert run(100, 3).most_common(1)[0][0] == 3
    run(300, 5)
    assert run(100, 5).most_common(1)[0][0] == 5


def test_clipped_depths_and_impossible_times_teach_nothing() -> None:
    control = DepthControl(SPLIT_DEPTHS)
    for depth, seconds in ((2, 0.001), (3, 0.0), (1, 1.0)):
        control.measured(depth, 3, seconds)
    taken: list[int] = []
    for _ in range(6):
        taken.append(control.depth(MOST))
        control.measured(taken[-1], 1, 1.0)
    assert taken == [3, 3, 3, 0, 5, 7]


@DEPTHS
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_step_with_little_room_still_finds_what_pays(depths: tuple[int, ...], most: int) -> None:
    """Other answers share its pass: what does not fit is neither tried nor waited for."""
    control, taken = DepthControl(depths), list[int]()
    for _ in range(200):
        taken.append(control.depth(most))
        control.measured(taken[-1], 1, dear(taken[-1]))
    assert max(taken) <= most
    assert taken[20:].count(0) > 160
    assert control.depth(7) > most


def test_what_a_depth_never_taken_would_give_is_told_by_the_others() -> None:
    shares = RightShares()
    for step in range(200):
        shares.judged(2, step % 2 * 2, step)
    assert shares.tokens(0) == 1.0
    assert shares.tokens(1) == pytest.approx(1.5, abs=0.05)
    assert shares.tokens(2) == pytest.approx(2.0, abs=0.1)
    assert shares.tokens(3) == pytest.approx(2.5, abs=0.15)


def test_after_a_while_one_draft_weighs_more_but_never_decides_alone() -> None:
    near, far = RightShares(), RightShares()
    for shares, gap in ((near, 1), (far, 1000)):
        for step in range(50):
            shares.judged(1, 0, step)
        shares.judged(1, 1, 49 + gap)
    assert 1 < near.tokens(1) < far.tokens(1) == pytest.approx(1.5)
