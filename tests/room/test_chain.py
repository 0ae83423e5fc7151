"""The chain as the model host computes with it, when its layers are dealt anew meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.core.clock import VirtualClock
from app.core.errors import StateError
from app.engine.types import ColumnClass
from app.room.chain import Chain
from app.room.laps import LapFailed
from tests.room.toy import HIDDEN, HYBRID, ToyCompute


class Reloaded(ToyCompute):
    """Its state is gone once another deal has loaded; what was asked of the old one fails."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def tokens(self, *_arguments: Any) -> Any:
        self.reached.set()
        await self.go_on.wait()
        raise StateError("Position 174 cannot follow.", "Start again.")


async def test_what_fails_because_of_a_new_deal_is_a_loss_that_is_repaired() -> None:
    compute = Reloaded()
    chain = Chain(compute, HIDDEN, (), VirtualClock(), hybrid=HYBRID.hybrid)
    sending = asyncio.ensure_future(chain.send([5], 174, ColumnClass.STEP))
    await compute.reached.wait()
    chain.end(LapFailed("The layers are dealt again."))
    compute.go_on.set()
    with pytest.raises(LapFailed, match="dealt again") as failed:
        await sending
    assert failed.value.repairable


async def test_what_fails_by_itself_says_why() -> None:
    compute = Reloaded()
    chain = Chain(compute, HIDDEN, (), VirtualClock(), hybrid=HYBRID.hybrid)
    compute.go_on.set()
    with pytest.raises(StateError, match="cannot follow"):
        await chain.send([5], 174, ColumnClass.STEP)
