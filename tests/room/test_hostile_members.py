"""A member that says impossible things harms nobody but itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.room import intents as it
from app.room import messages as m
from app.room.ports import Message
from app.room.state import Phase
from tests.room.world import Box, MemoryLink, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def link_home(world: World, box: Box) -> MemoryLink:
    assert box.transport is not None
    return next(link for link in world.network.links if link.me == box.transport.me and link.open)


async def say(world: World, box: Box, message: Message) -> None:
    """Puts a raw message past the member's own code."""
    link_home(world, box).other.on_message(message)
    await world.run(1)


async def test_the_roster_survives_an_impossible_description(world: World) -> None:
    otter, heron = await world.room(2, 2)
    assert otter.transport is not None
    near, far = world.network.pair("stranger", otter.transport.me)
    otter.transport.on_link(far, {"name": "wren", "meta": {"contribGB": -(2**40), "ctx": -(2**40)}})
    await world.settle()
    assert [device.name for device in heron.state.devices] == ["otter", "heron", "wren"]
    near.close()
    await world.settle()
    assert [device.name for device in heron.state.devices] == ["otter", "heron"]


async def test_the_clock_goes_on_after_a_share_that_is_no_number(world: World) -> None:
    otter, heron = await world.room(2, 2)
    heron.compute.slow_load = asyncio.Event()
    otter.do(it.Start())
    await world.settle()
    await say(world, heron, {"t": "ai-progress", "pct": float("nan")})
    heron.compute.slow_load.set()
    await world.until(lambda: otter.state.phase is Phase.ONLINE)


async def test_a_long_complaint_still_ends_the_start_on_every_screen(world: World) -> None:
    otter, heron = await world.room(2, 2)
    heron.compute.slow_load = asyncio.Event()
    otter.do(it.Start())
    await world.settle()
    await say(world, heron, {"t": "ai-error", "message": "x" * m.LONGEST_LINE, "load": 1})
    assert otter.state.phase is heron.state.phase is Phase.ROOM


@pytest.mark.parametrize("model", ["", "nothing of that name", "toy-huge"])
async def test_a_start_that_cannot_be_leaves_the_running_model_alone(world: World, model: str) -> None:
    otter, heron = await world.started(2, 2)
    await say(world, heron, {"t": "ai-start-req", "model": model})
    assert otter.state.phase is heron.state.phase is Phase.ONLINE
    assert heron.state.notices
    heron.do(it.Ask("Still there?"))
    await world.until(lambda: bool(heron.state.transcript) and not heron.state.live)
    assert heron.answer
