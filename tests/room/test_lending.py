"""What a device lends changes while a model runs: paused, more, less, a GPU that is gone, a machine that slept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.prompt.chat import UserTurn
from app.room import intents as it
from app.room.precision import Precision
from app.room.state import DeviceStatus, Phase
from tests.room.test_member_hosts import host_name, started_by, texts
from tests.room.test_restarts import undisturbed
from tests.room.test_rooms import MOST, ask, cuts, idle, prompt, words
from tests.room.toy import one_device
from tests.room.world import EXACT, Box, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def holders(box: Box) -> list[str]:
    return [device.name for device in box.state.devices if device.layers]


async def test_a_paused_device_frees_its_layers_at_once_and_the_answer_goes_on(world: World) -> None:
    world.network.latency = 0.05
    otter, heron, finch = await world.started(2, 3, 3)
    otter.do(it.Ask("One?"))
    holder = heron if heron.compute.part else finch
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    holder.do(it.PauseLending(paused=True))
    await world.run(0.3)
    assert holder.compute.part is None
    await world.until(lambda: idle(otter, heron, finch), 60)
    assert holder.name not in holders(otter)
    assert next(d for d in otter.state.devices if d.name == holder.name).status is DeviceStatus.PAUSED
    assert texts(otter) == texts(heron) == texts(finch)
    assert len(otter.answer) == MOST
    holder.do(it.PauseLending(paused=False))
    await world.until(lambda: otter.state.redeal_reason == f"{holder.name} lends more now.", 5)


async def test_the_model_moves_when_the_device_that_runs_it_pauses() -> None:
    world = World(fixed=False)
    otter, heron, finch = await started_by(world, 0, 2, 6, 6)
    first = await ask(world, otter, "One?")
    heron.do(it.PauseLending(paused=True))
    await world.until(lambda: host_name(otter) == "finch" and otter.state.phase is Phase.ONLINE, 30)
    assert heron.compute.part is None
    await ask(world, heron, "Two?")
    assert texts(otter)[0] == ("One?", first)
    assert texts(otter) == texts(finch)
    await world.close()


async def test_less_memory_than_is_held_deals_again_and_more_is_offered(world: World) -> None:
    otter, heron = await world.started(3, 3)
    held = [box.compute.part for box in (otter, heron)]
    heron.do(it.SetPledge(8))
    await world.until(lambda: "lends more" in otter.state.redeal_reason, 5)
    assert [box.compute.part for box in (otter, heron)] == held
    otter.do(it.SetPledge(1))
    await world.until(lambda: otter.state.phase is Phase.ONLINE and otter.compute.part not in held, 30)
    assert await ask(world, heron, "Still?") == otter.answer


@pytest.mark.parametrize("where", [0, 1])
async def test_a_lost_gpu_is_rebuilt_and_the_answer_is_the_same(world: World, where: int) -> None:
    world.network.latency = 0.05
    boxes = await world.started(2, 3)
    otter = boxes[0]
    otter.do(it.Ask("One?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    boxes[where].compute.lost = True
    await world.until(lambda: len(boxes[where].compute.loads) == 2, 10)
    await world.until(lambda: idle(*boxes), 60)
    assert len(boxes[where].compute.loads) == 2
    assert len(boxes[1 - where].compute.loads) == 1
    assert texts(otter) == texts(boxes[1]) == await undisturbed(("One?",), 2, 3)


async def test_a_gpu_that_stays_lost_is_dealt_around(world: World) -> None:
    otter, heron, finch = await world.started(2, 3, 4)
    otter.do(it.Ask("One?"))
    await world.until(lambda: bool(otter.state.live and otter.state.live.answer))
    holder = heron if heron.compute.part else finch
    holder.compute.lost = holder.compute.fail_load = True
    await world.until(lambda: idle(otter, heron, finch), 120)
    assert holder.name not in holders(otter)
    assert len(otter.answer) == MOST


async def test_whole_floats_make_every_cut_the_same(world: World) -> None:
    boxes = await world.started(1, 1, 2, settings=replace(EXACT, precision=Precision.FULL))
    answer = await ask(world, boxes[2], "Why is the sky blue?")
    assert len(cuts(boxes[0])) == 2
    assert answer == words(one_device(prompt(UserTurn("Why is the sky blue?")), MOST, []))


async def test_a_machine_that_slept_blames_nobody_and_is_soon_back(world: World) -> None:
    otter, heron = await world.started(2, 3)
    heron.running = False
    await world.run(5)
    world.clock.advance(3600)
    for box in (otter, heron):
        box.running = True
    await world.run(1)
    assert otter.state.phase is Phase.ONLINE
    assert [device.name for device in otter.state.devices if not device.away] == ["otter", "heron"]
    assert await ask(world, heron, "Awake?") == otter.answer


async def test_links_that_stay_quiet_after_a_sleep_are_dropped_soon(world: World) -> None:
    otter, heron = await world.started(2, 3)
    world.clock.advance(600)
    world.kill(heron)
    await world.run(7)
    assert len([d for d in otter.state.devices if not d.away]) == 2
    await world.until(lambda: otter.state.phase is Phase.DEGRADED, 3)
