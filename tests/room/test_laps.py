"""Laps: how long they may take, and what a hold does to their time."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.clock import VirtualClock
from app.room.laps import LapFailed, LapKey, Laps, LapStats

STATES = np.zeros((1, 4), np.float32)


def test_timeouts_follow_the_measured_laps() -> None:
    stats = LapStats()
    assert stats.timeout(0.1, batch=False) == 30
    assert stats.timeout(0.1, batch=True) == 90
    for _ in range(4):
        stats = stats.measured(0.1, 0.05)
    assert stats.timeout(0.1, batch=False) == 25
    slow = stats.measured(4.5, 0.05)
    assert slow.timeout(0.5, batch=False) == pytest.approx(30)
    assert slow.timeout(0.5, batch=True) == pytest.approx(6 * 4.5 + 3)


def test_the_slowest_lap_is_forgotten_slowly() -> None:
    stats = LapStats().measured(2.0, 1.0).measured(1.0, 1.0)
    assert stats.lap == pytest.approx(1.7)
    assert stats.slowest == pytest.approx(1.96)


async def test_an_overdue_lap_fails_and_a_late_frame_finds_nobody() -> None:
    clock = VirtualClock()
    laps = Laps(clock)
    lap = laps.open(LapKey(3, batch=False), 30)
    clock.advance(29)
    laps.tick()
    assert not lap.done()
    clock.advance(2)
    laps.tick()
    with pytest.raises(LapFailed, match="too long"):
        await lap
    assert not laps.arrived(LapKey(3, batch=False), STATES)


async def test_time_stands_still_while_held() -> None:
    clock = VirtualClock()
    laps = Laps(clock)
    lap = laps.open(LapKey(3, batch=True), 30)
    laps.held = True
    for _ in range(100):
        clock.advance(1)
        laps.tick()
    assert not lap.done()
    laps.held = False
    assert laps.arrived(LapKey(3, batch=True), STATES)
    assert (await lap).shape == (1, 4)


async def test_one_failure_ends_all_laps() -> None:
    laps = Laps(VirtualClock())
    flying = [laps.open(LapKey(i, batch=False), 30) for i in range(3)]
    laps.fail_all(LapFailed("heron left."))
    for lap in flying:
        with pytest.raises(LapFailed, match="heron left"):
            await lap
    assert len(laps) == 0
