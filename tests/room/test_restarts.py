"""The creator's program ends without a word and starts again: the room goes on where it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.prompt.chat import UserTurn
from app.room import intents as it
from app.room.settings import Visibility
from app.room.state import Phase
from tests.room.test_member_hosts import host_name, started_by, texts
from tests.room.test_rooms import MOST, ask, cuts, idle, prompt, words
from tests.room.toy import one_device
from tests.room.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


async def undisturbed(questions: tuple[str, ...], *pledges: float) -> list[tuple[str, str]]:
    """What the same room says when nothing happens to it."""
    world = World()
    otter = (await world.started(*pledges))[0]
    for question in questions:
        await ask(world, otter, question)
    await world.close()
    return texts(otter)


async def test_an_idle_room_is_back_with_its_conversation(world: World) -> None:
    otter, heron, finch = await world.started(1, 1, 2)
    first = await ask(world, heron, "One?")
    otter.do(it.ChangeSettings(replace(otter.state.settings, visibility=Visibility.OWNER, ask_first=False)))
    await world.run(0.5)
    link = otter.state.invite.link if otter.state.invite else ""
    world.crash(otter)
    await world.run(20)
    otter = await world.restart(otter)
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in (otter, heron, finch)), 90)
    assert otter.state.invite is not None
    assert otter.state.invite.link == link
    assert otter.state.settings.visibility is Visibility.OWNER
    assert not otter.state.settings.ask_first
    assert texts(otter) == [("One?", first)]
    await ask(world, otter, "Two?")
    assert texts(otter) == await undisturbed(("One?", "Two?"), 1, 1, 2)


@pytest.mark.parametrize("written", [0, 30])
async def test_an_answer_that_was_cut_short_is_written_to_its_end(world: World, written: int) -> None:
    world.network.latency = 0.05
    otter, heron, finch = await world.started(1, 1, 2)
    await ask(world, finch, "One?")
    heron.do(it.Ask("Two?"))
    finch.do(it.Ask("Three?"))
    await world.until(lambda: bool(finch.state.live and len(finch.state.live.answer) >= written))
    await world.run(0.2)
    world.crash(otter)
    await world.run(35)
    assert heron.state.phase is Phase.RECONNECTING
    otter = await world.restart(otter)
    await world.until(lambda: len(otter.state.transcript) == 3 and idle(otter, heron, finch), 200)
    assert texts(otter) == texts(heron) == texts(finch) == await undisturbed(("One?", "Two?", "Three?"), 1, 1, 2)


async def test_a_question_nobody_heard_is_asked_again(world: World) -> None:
    otter, heron = await world.started(2, 3)
    await world.run(0.2)
    world.crash(otter)
    heron.do(it.Ask("Into the void?"))
    await world.run(10)
    otter = await world.restart(otter)
    await world.until(lambda: bool(heron.state.transcript) and idle(otter, heron), 120)
    assert heron.answer == words(one_device(prompt(UserTurn("Into the void?")), MOST, cuts(otter)))


async def test_a_room_whose_devices_do_not_come_back_starts_with_those_that_did(world: World) -> None:
    otter, heron, finch = await world.started(2, 2, 3)
    await ask(world, heron, "One?")
    world.crash(otter)
    world.crash(finch)
    await world.run(10)
    otter = await world.restart(otter)
    took = await world.until(lambda: otter.state.phase is Phase.ONLINE, 90)
    assert 20 < took < 60
    assert len(texts(otter)) == 1
    assert await ask(world, heron, "Two?")


async def test_a_model_on_a_member_goes_on_while_the_creator_restarts() -> None:
    world = World(fixed=False)
    otter, heron, finch = await started_by(world, 0, 1, 6, 1)
    world.network.latency = 0.05
    finch.do(it.Ask("Say on."))
    await world.until(lambda: bool(finch.state.live and finch.state.live.answer))
    world.crash(otter)
    await world.until(lambda: bool(finch.state.transcript) and finch.state.live is None, 100)
    loads = len(heron.compute.loads)
    otter = await world.restart(otter)
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in (otter, heron, finch)), 90)
    assert host_name(otter) == "heron"
    assert len(heron.compute.loads) == loads
    await world.until(lambda: texts(otter) == texts(finch) == texts(heron), 10)
    assert finch.answer == words(one_device(prompt(UserTurn("Say on.")), MOST, cuts(heron)))
    await world.close()


async def test_a_creator_that_finds_the_model_host_last_leaves_nobody_waiting() -> None:
    """Who is back before it goes on following it: for that device it was never away."""
    world = World(fixed=False)
    otter, heron, finch = await started_by(world, 0, 1, 6, 1)
    await ask(world, finch, "One?")
    await world.until(lambda: idle(otter, heron, finch))
    apart = frozenset({otter.transport.me, heron.transport.me})  # type: ignore[union-attr]
    world.crash(otter)
    world.network.apart.add(apart)
    otter = await world.restart(otter)
    await world.until(lambda: [device.name for device in otter.state.devices] == ["otter", "finch"], 50)
    await world.run(2)
    assert otter.state.phase is Phase.DEGRADED
    assert finch.state.phase is Phase.ONLINE
    world.network.apart.discard(apart)
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in (otter, heron, finch)), 50)
    await ask(world, finch, "Two?")
    await world.until(lambda: idle(otter, heron, finch))
    assert texts(otter) == texts(heron) == texts(finch)
    await world.close()


@pytest.mark.parametrize(("away", "offered", "straight"), [(30, True, True), (300, True, False), (1000, False, False)])
async def test_a_room_is_offered_for_a_while(world: World, away: float, offered: bool, straight: bool) -> None:
    otter = (await world.room(2))[0]
    await world.run(6)
    world.crash(otter)
    world.clock.advance(away)
    again = world.box("otter", memory=otter.memory)
    assert (again.state.offer is not None) is offered
    assert again.state.offer is None or again.state.offer.straight_back is straight


async def test_a_room_left_on_purpose_is_forgotten(world: World) -> None:
    otter, heron = await world.room(2, 2)
    await world.run(1)
    otter.do(it.Leave())
    await world.until(lambda: heron.state.phase is Phase.OVER)
    assert otter.memory.last() is None
    assert heron.memory.last() is None


async def test_a_member_whose_program_ended_is_back_under_its_name(world: World) -> None:
    otter, heron = await world.started(2, 3)
    first = await ask(world, heron, "One?")
    world.crash(heron)
    await world.run(5)
    again = await world.restart(heron)
    await world.until(lambda: again.state.phase is otter.state.phase is Phase.ONLINE, 60)
    assert [device.name for device in otter.state.devices] == ["otter", "heron"]
    assert texts(again) == [("One?", first)]
    assert await ask(world, again, "Two?") == otter.answer


async def test_a_member_that_dies_while_loading_is_dealt_less_when_it_is_back(world: World) -> None:
    otter, *others = boxes = await world.room(2, 3, 4)
    for box in others:
        box.compute.slow_load = asyncio.Event()
    otter.do(it.Start())
    await world.until(lambda: any(d.layers for d in otter.state.devices), 5)
    await world.run(0.5)
    before = {d.name: d.layers for d in otter.state.devices if d.layers}
    holder = next(box for box in others if box.name in before)
    for box in others:
        box.compute.slow_load.set() if box.compute.slow_load else None
    world.crash(holder)
    await world.run(3)
    again = await world.restart(holder)
    live = [again if box is holder else box for box in boxes]
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in live), 120)
    after = {d.name: d.layers for d in otter.state.devices if d.layers}
    assert after != before
    told = [said for link in world.network.links for said in link.sent if said.get("t") == "ai-share"]
    assert len(told) == 1
    assert await ask(world, again, "Now?") == otter.answer


async def test_devices_of_a_chain_are_back_in_it_soon_after_their_creator() -> None:
    """The creator and another member hold layers for the member that runs the model."""
    world = World(fixed=False)
    boxes = otter, heron, finch = await started_by(world, 0, 1, 1.5, 1)
    assert [len(box.compute.loads) for box in boxes] == [1, 1, 1]
    first = await ask(world, otter, "One?")
    await world.until(lambda: idle(*boxes))
    world.crash(otter)
    await world.run(8)
    otter = await world.restart(otter)
    took = await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in (otter, heron, finch)), 90)
    assert took < 40
    assert len(heron.compute.loads) == len(finch.compute.loads) == 1
    assert texts(otter) == texts(finch) == [("One?", first)]
    await world.close()


async def test_a_model_host_that_began_anew_shows_what_was_said_before() -> None:
    world = World(fixed=False)
    otter, heron, finch = await started_by(world, 0, 1, 6, 1)
    first = await ask(world, finch, "One?")
    await world.until(lambda: idle(otter, heron, finch))
    world.crash(heron)
    await world.run(5)
    heron = await world.restart(heron)
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in (otter, heron, finch)), 90)
    assert host_name(otter) == "heron"
    second = await ask(world, finch, "Two?")
    await world.until(lambda: idle(otter, heron, finch))
    assert texts(heron) == texts(otter) == texts(finch) == [("One?", first), ("Two?", second)]
    await world.close()
