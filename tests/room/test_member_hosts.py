"""The model runs on a member: whoever presses Start, wherever it runs, and when the one that runs it goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.prompt.chat import AssistantTurn, UserTurn
from app.room import intents as it
from app.room import messages as m
from app.room.planner import SplitMode
from app.room.settings import Visibility
from app.room.state import Phase
from tests.room.test_rooms import MOST, ask, cuts, idle, prompt, words
from tests.room.toy import one_device
from tests.room.world import EXACT, Box, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(fixed=False)
    yield made
    await made.close()


def host_name(box: Box) -> str:
    return next((device.name for device in box.state.devices if device.model_host), "")


def texts(box: Box) -> list[tuple[str, str]]:
    return [(item.question, item.answer) for item in box.state.transcript]


async def started_by(world: World, presser: int, *pledges: float) -> list[Box]:
    boxes = await world.room(*pledges)
    await world.settle()
    boxes[presser].do(it.Start())
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in boxes))
    return boxes


@pytest.mark.parametrize("presser", [0, 1, 2])
@pytest.mark.parametrize("pledges", [(1, 3, 1), (1, 6, 1), (2, 1, 2.5)])
async def test_any_member_may_start_and_the_strongest_runs_it(
    world: World, presser: int, pledges: tuple[float, ...]
) -> None:
    boxes = await started_by(world, presser, *pledges)
    strongest = boxes[pledges.index(max(pledges))]
    assert {host_name(box) for box in boxes} == {strongest.name}
    for asker in boxes:
        answer = await ask(world, asker, f"Asked by {asker.name}?")
        await world.until(lambda: idle(*boxes))
        assert {box.answer for box in boxes} == {answer}
    turns: list[UserTurn | AssistantTurn] = []
    for exchange in boxes[0].state.transcript:
        turns.append(UserTurn(exchange.question))
        assert exchange.answer == words(one_device(prompt(*turns), MOST, cuts(boxes[0])))
        turns.append(AssistantTurn(tuple(exchange.answer.encode())))


async def test_a_creator_without_a_gpu_gets_answers_from_a_member(world: World) -> None:
    otter = world.box("otter", gpu=False)
    otter.do(it.OpenRoom("otter", 0))
    await world.until(lambda: otter.state.invite is not None)
    heron = await world.join("heron", 6, otter)
    otter.do(it.Start())
    await world.until(lambda: otter.state.phase is heron.state.phase is Phase.ONLINE)
    assert host_name(otter) == "heron"
    answer = await ask(world, otter, "Who answers?")
    assert answer == words(one_device(prompt(UserTurn("Who answers?")), MOST, []))


async def test_a_newcomer_finds_the_model_on_a_member(world: World) -> None:
    otter, heron, _ = await started_by(world, 0, 1, 3, 1)
    said = await ask(world, otter, "Before?")
    wren = await world.join("wren", 0, otter, gpu=False)
    await world.until(lambda: wren.state.phase is Phase.ONLINE and bool(wren.state.transcript))
    assert wren.answer == said
    assert host_name(wren) == heron.name
    assert await ask(world, wren, "And now?") == heron.answer


async def test_the_owner_rules_a_room_whose_model_runs_elsewhere(world: World) -> None:
    otter, heron, finch = await started_by(world, 2, 1, 3, 1)
    otter.do(it.ChangeSettings(replace(otter.state.settings, visibility=Visibility.ASKER)))
    await world.settle()
    answer = await ask(world, finch, "A secret?")
    await world.until(lambda: idle(otter, heron))
    assert otter.answer == answer
    assert heron.state.transcript[-1].hidden
    otter.do(it.StopStart())
    await world.until(lambda: all(box.state.phase is Phase.ROOM for box in (otter, heron, finch)))
    assert all(box.compute.part is None for box in (otter, heron, finch))


async def test_the_owner_may_stop_an_answer_that_a_member_writes(world: World) -> None:
    world.network.latency = 0.1
    otter, heron, finch = await started_by(world, 0, 1, 3, 1)
    finch.do(it.Ask("Say much."))
    await world.until(lambda: bool(otter.state.live and otter.state.live.answer))
    otter.do(it.Stop())
    await world.until(lambda: idle(otter, heron, finch))
    assert "stopped" in finch.state.transcript[-1].stats


async def test_a_lost_model_host_is_replaced_and_the_answer_is_the_same(world: World) -> None:
    world.network.latency = 0.05
    otter, heron, finch = await started_by(world, 0, 2, 6, 6)
    await ask(world, finch, "One?")
    finch.do(it.Ask("Two?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    world.kill(heron)
    await world.until(lambda: otter.state.phase is Phase.DEGRADED and finch.state.phase is Phase.DEGRADED, 20)
    await world.until(lambda: idle(otter, finch), 200)
    assert host_name(otter) == host_name(finch) == "finch"
    calm = World(fixed=False)
    left_alone = (await started_by(calm, 0, 2, 6, 6))[0]
    for question in ("One?", "Two?"):
        await ask(calm, left_alone, question)
    assert texts(otter) == texts(finch) == texts(left_alone)
    await calm.close()


@pytest.mark.parametrize("seconds", [5, 20, 45])
async def test_a_model_host_that_cannot_reach_the_owner_for_a_while_goes_on(world: World, seconds: float) -> None:
    otter, heron, finch = await started_by(world, 0, 1, 3, 1)
    loads = len(heron.compute.loads)
    apart = frozenset({otter.transport.me, heron.transport.me})  # type: ignore[union-attr]
    world.network.apart.add(apart)
    await world.run(seconds)
    assert otter.state.phase is (Phase.ONLINE if seconds < 12 else Phase.DEGRADED)
    world.network.apart.discard(apart)
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in (otter, heron, finch)), 50)
    assert host_name(otter) == host_name(finch) == "heron"
    assert len(heron.compute.loads) == loads
    await ask(world, otter, "Still there?")
    await world.until(lambda: idle(otter, heron, finch))
    assert heron.answer == otter.answer == finch.answer


async def test_a_member_that_names_itself_is_not_followed(world: World) -> None:
    otter, heron, finch = await started_by(world, 0, 1, 3, 1)
    assert finch.transport is not None
    assert heron.transport is not None
    link = await finch.transport.dial(heron.transport.me)
    for message in (
        m.StartRequest(model="toy", boss=finch.transport.me),
        m.ModelHostIs(id=finch.transport.me),
        m.Load(model="toy", range=(0, 6), ctx=64),
        m.RulesAre(visibility="host"),
        m.PastIs(model="toy"),
        m.StartFailed(why="ha"),
    ):
        link.send(m.encode(message))
    await world.run(0.5)
    assert heron.state.phase is Phase.ONLINE
    assert await ask(world, otter, "Who?") == heron.answer


async def test_a_start_for_another_device_than_the_rule_gives_is_refused(world: World) -> None:
    otter, heron, _ = await world.room(1, 3, 1)
    heron_link = world.network.between(heron.transport.me, otter.transport.me)  # type: ignore[union-attr]
    assert heron_link is not None
    heron_link.send(m.encode(m.StartRequest(model="toy", boss=otter.transport.me)))  # type: ignore[union-attr]
    await world.run(0.2)
    assert otter.state.phase is heron.state.phase is Phase.ROOM
    assert "Press Start again" in heron.state.notices[-1].text


async def test_three_messages_without_sense_end_a_link_and_nothing_else(world: World) -> None:
    otter, heron, finch = await started_by(world, 0, 4, 1, 1)
    bad = world.network.between(finch.transport.me, otter.transport.me)  # type: ignore[union-attr]
    assert bad is not None
    for _ in range(2):
        bad.send({"t": "ping", "ts": "soon"})
    await world.run(0.2)
    assert bad.open
    bad.send({"t": "ai-ask", "text": ["?"]})
    await world.run(0.2)
    assert not bad.open
    await world.until(lambda: idle(otter, heron) or otter.state.phase is Phase.ONLINE, 90)
    assert await ask(world, heron, "Still here?")


async def test_layers_of_a_device_that_left_for_good_are_dealt_again_at_once(world: World) -> None:
    """The model host hears it from the device itself and, in the same breath, from the creator's roster."""
    otter, heron, finch = await world.room(3, 4, 3, settings=replace(EXACT, split=SplitMode.MEMORY))
    otter.do(it.Start())
    await world.until(lambda: len([d for d in heron.state.devices if d.layers and d.ready]) == 3)
    finch.do(it.Leave())
    await world.until(lambda: len([d for d in heron.state.devices if d.layers]) == 2, 10)
    await world.until(lambda: otter.state.phase is heron.state.phase is Phase.ONLINE, 10)
    assert await ask(world, otter, "Who is left?") == heron.answer


async def test_who_comes_while_nobody_runs_the_model_reads_what_was_said(world: World) -> None:
    otter, heron, finch = await started_by(world, 0, 2, 3, 2)
    said = await ask(world, otter, "Before?")
    await world.until(lambda: idle(otter, heron, finch))
    world.kill(heron)
    await world.until(lambda: otter.state.phase is not Phase.ONLINE)
    wren = await world.join("wren", 2, otter)
    assert not wren.state.transcript
    others = (otter, finch, wren)
    await world.until(lambda: all(box.state.phase is Phase.ONLINE for box in others), 300)
    await world.settle()
    assert [texts(box) for box in others] == [[("Before?", said)]] * 3
