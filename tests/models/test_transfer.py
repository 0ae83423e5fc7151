"""The meter: speed over the last seconds, by a clock of its own."""

from __future__ import annotations

import pytest

from app.models.transfer import TELL_EVERY, WINDOW, Meter, Stage, Transfer


class Told:
    """A meter whose clock stands where a test puts it, and all that it said."""

    def __init__(self, total: int, done: int = 0, stage: Stage = Stage.FETCH) -> None:
        self.now = 100.0
        self.said: list[Transfer] = []
        self.meter = Meter(self.said.append, done, total, stage, lambda: self.now)

    def add(self, done: int, after: float) -> Transfer:
        self.now += after
        self.meter.add(done)
        return self.said[-1]


def test_speed_and_the_time_left_are_those_of_the_window() -> None:
    told = Told(10_000)
    for second in range(1, 11):
        told.add(second * 100, 1.0)
    for second in range(1, 11):
        last = told.add(1000 + second * 500, 1.0)
    assert last == Transfer(6000, 10_000, 500.0, 8.0)
    assert last.share == 0.6


def test_what_was_there_before_is_done_and_not_fast() -> None:
    told = Told(1000, done=800)
    assert told.add(900, 2.0) == Transfer(900, 1000, 50.0, 2.0)


def test_after_a_pause_longer_than_the_window_there_is_still_a_speed() -> None:
    told = Told(10_000)
    told.add(1000, 1.0)
    assert told.add(2000, 2 * WINDOW).speed == pytest.approx(100.0)


def test_it_is_told_at_most_ten_times_a_second_and_always_at_the_end() -> None:
    told = Told(1000)
    for done in range(1, 1001):
        told.add(done, 0.001)
    assert len(told.said) <= 1 / TELL_EVERY + 2
    assert told.said[-1].done == 1000


def test_an_unknown_whole_has_no_share_and_no_time_left() -> None:
    last = Told(0, stage=Stage.CHECK).add(500, 1.0)
    assert (last.share, last.left, last.stage) == (0.0, None, Stage.CHECK)
