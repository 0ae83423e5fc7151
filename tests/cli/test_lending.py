"""How much is lent, and the reason given."""

from __future__ import annotations

import pytest

from app.cli import lending
from app.cli.lending import Lent, by_rule, lent, most
from app.cli.options import JoinOptions
from app.core.memory import Graphics, Ram
from app.core.settings import Settings
from app.room.compute import GpuSummary

OWN = Graphics(8, unified=False, free=11.5)
UNKNOWN = Graphics(8, unified=False)
SHARED = Graphics(8, unified=True)
GPU = GpuSummary("a card", 1 << 33, 1 << 30, 100.0, software=False)


@pytest.mark.parametrize(
    ("gpu", "ram", "gb", "why"),
    [
        (OWN, Ram(32, 20), 10, "11.5 GB of its memory are free, 1.5 GB stay with the driver"),
        (UNKNOWN, Ram(32, 20), 4, "half of its largest buffer"),
        (SHARED, Ram(32, 30), 20.5, "of 32 GB of memory 11.2 GB stay with the system"),
        (SHARED, Ram(32, 10), 8, "10 GB of memory are free"),
        (SHARED, Ram(8, 4), 1, "4 GB of memory are free"),
        (SHARED, Ram(8, 2.5), 0, "less than 1 GB"),
    ],
)
def test_the_rule_says_why(gpu: Graphics, ram: Ram, gb: float, why: str) -> None:
    given = by_rule(gpu, ram)
    assert given.gb == gb
    assert why in given.why


@pytest.mark.parametrize(
    ("gpu", "ram", "gb"),
    [(OWN, Ram(32, 20), 11), (SHARED, Ram(32, 30), 28), (SHARED, Ram(32, 10), 9.5), (SHARED, Ram(4, 3), 0)],
)
def test_all_there_is_leaves_the_driver_and_the_system_what_they_need(gpu: Graphics, ram: Ram, gb: float) -> None:
    assert most(gpu, ram).gb == gb


async def test_flags_come_before_settings_and_settings_before_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "graphics", lambda *_args: OWN)
    monkeypatch.setattr(lending, "system_ram", lambda: Ram(32, 20))
    asked = JoinOptions(where="x", gb=3)
    assert await lent(asked, Settings(pledge_gb=5), GPU) == Lent(3, "as you asked")
    assert (await lent(JoinOptions(where="x", most=True), Settings(pledge_gb=5), GPU)).gb == 11
    assert (await lent(JoinOptions(where="x"), Settings(pledge_gb=5), GPU)).gb == 5
    assert (await lent(JoinOptions(where="x"), Settings(), GPU)).gb == 10
    assert (await lent(asked, Settings(), None)).gb == 0
