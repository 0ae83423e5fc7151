"""Whole rooms with a hybrid model: drafts, reuse and checkpoints through losses, on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from app.prompt.chat import AssistantTurn, UserTurn
from app.room import intents as it
from app.room.state import Phase
from tests.room.test_rooms import ask, cuts, idle, prompt, words
from tests.room.toy import one_device
from tests.room.world import EXACT, Box, World

MOST = 150
QUESTION = "Through the storm, and what was there?"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


async def started(world: World, *pledges: float, right: float = 0.0) -> list[Box]:
    """A room that runs the hybrid; with ``right`` the model host has a draft block of that quality."""
    boxes = await world.room(*pledges)
    if right:
        boxes[0].compute.guess = guesses(boxes[0], right)
    boxes[0].do(it.ChooseModel("toy-hybrid"))
    boxes[0].do(it.Start())
    await world.until(lambda: all(box.state.phase.has_model for box in boxes))
    return boxes


def guesses(box: Box, right: float) -> Callable[[int, int], list[int]]:
    """What one device would say to the one question, some of it wrong."""
    dice = random.Random(3)
    known: dict[tuple[int, ...], list[int]] = {}

    def guess(position: int, count: int) -> list[int]:
        cut = tuple(cuts(box))
        ids = prompt(UserTurn(QUESTION))
        if cut not in known:
            known[cut] = [*ids, *one_device(ids, MOST + 20, cut)]
        return [token if dice.random() < right else 96 for token in known[cut][position : position + count]]

    return guess


@pytest.mark.parametrize("pledges", [(4,), (2, 3), (1, 1, 2)], ids=len)
async def test_a_drafting_room_says_what_one_device_says(world: World, pledges: tuple[float, ...]) -> None:
    world.network.latency = 0.02
    boxes = await started(world, *pledges, right=0.9)
    otter = boxes[0]
    began = world.clock.now()
    answer = await ask(world, otter, QUESTION)
    assert answer == words(one_device(prompt(UserTurn(QUESTION)), MOST, cuts(otter)))
    stats = otter.state.transcript[-1].stats
    assert "% drafts accepted" in stats
    accepted = otter.state.speed.drafts_accepted
    assert accepted is not None
    assert 0.5 < accepted < 1
    assert world.clock.now() - began < 60 or len(pledges) == 1


async def test_regenerating_reads_only_the_question_again(world: World) -> None:
    otter, heron = await started(world, 2, 3)
    first = await ask(world, heron, "One? " + "x" * 100)
    second = await ask(world, heron, "Two?")
    before = heron.compute.prompt_columns
    heron.do(it.Regenerate())
    await world.until(lambda: len(heron.state.transcript) == 3 and idle(heron, otter))
    turns = (UserTurn("One? " + "x" * 100), AssistantTurn(tuple(first.encode())), UserTurn("Two?"))
    kept = len(prompt(turns[0])) + len(first) - 1
    assert f"({kept} reused)" in heron.state.transcript[-1].stats
    assert otter.state.speed.reused == kept
    assert heron.compute.prompt_columns - before == len(prompt(*turns)) - kept - 1
    assert heron.answer == second
    assert otter.compute.restored == heron.compute.restored == [kept]


async def test_a_follow_up_reads_only_what_is_new(world: World) -> None:
    otter, heron = await started(world, 2, 3)
    first = await ask(world, heron, "One?")
    await ask(world, heron, "Two?")
    assert otter.state.speed.reused == len(prompt(UserTurn("One?"))) + len(first) - 1
    assert otter.compute.restored == []


async def test_the_start_of_a_question_is_kept_where_much_was_read_before_it(world: World) -> None:
    otter, heron = await started(world, 2, 3)
    first = await ask(world, heron, "One? " + "x" * 200)
    otter.do(it.Redeal())
    await world.run(0.5)
    await world.until(lambda: heron.state.phase is Phase.ONLINE)
    second = await ask(world, heron, "Two?")
    assert otter.state.speed.reused == 0
    heron.do(it.Regenerate())
    await world.until(lambda: len(heron.state.transcript) == 3 and idle(heron, otter))
    turns = (UserTurn("One? " + "x" * 200), AssistantTurn(tuple(first.encode())), UserTurn("Two?"))
    start = bytes(token % 256 for token in prompt(*turns)).rindex(b"Two?")
    assert otter.compute.restored == heron.compute.restored == [start]
    assert heron.answer == second


async def test_settings_turn_checkpoints_off(world: World) -> None:
    boxes = await world.room(2, 3, settings=replace(EXACT, checkpoints=0))
    boxes[0].do(it.ChooseModel("toy-hybrid"))
    boxes[0].do(it.Start())
    await world.until(lambda: all(box.state.phase.has_model for box in boxes))
    await ask(world, boxes[0], "One?")
    await ask(world, boxes[0], "Two?")
    assert [box.compute.kept for box in boxes] == [{}, {}]


@pytest.mark.parametrize("seed", range(6))
async def test_trouble_of_any_kind_changes_no_word(world: World, seed: int) -> None:
    dice = random.Random(seed)
    world.network.latency = 0.2
    boxes = await started(world, 1, 1, 2, right=0.6)
    otter = boxes[0]
    otter.do(it.Ask(QUESTION))
    expected = words(one_device(prompt(UserTurn(QUESTION)), MOST, cuts(otter)))
    for _ in range(4):
        await world.run(dice.uniform(0.5, 4.0))
        victim = dice.choice(boxes[1:])
        world.mute(victim)
        await world.run(dice.choice([0.5, 3.0, 14.0, 20.0]))
        world.unmute(victim)
        assert expected.startswith(otter.state.transcript[-1].answer)
    await world.until(lambda: idle(otter), 300)
    assert otter.answer == expected


@pytest.mark.parametrize("seed", range(4))
async def test_trouble_in_a_conversation_with_checkpoints(world: World, seed: int) -> None:
    """Losses between and during three answers, one of them asked again: as in a room where nothing happens."""
    calm = World()
    quiet = await started(calm, 2, 3, 3)
    expected = await conversation(calm, quiet, lambda: None)
    await calm.close()
    dice = random.Random(seed)
    world.network.latency = 0.1
    boxes = await started(world, 2, 3, 3)
    muted: list[Box] = []

    def disturb() -> None:
        for box in muted:
            world.unmute(box)
        muted[:] = [boxes[1]] if dice.random() < 0.6 else []
        for box in muted:
            world.mute(box)

    answers = await conversation(world, boxes, disturb)
    assert answers == expected


async def conversation(world: World, boxes: list[Box], disturb: Callable[[], None]) -> list[str]:
    otter = boxes[0]
    answers: list[str] = []
    for step in ("First?", "Second?", "again", "Third?"):
        count = len(otter.state.transcript)
        otter.do(it.Regenerate() if step == "again" else it.Ask(step))
        await world.until(lambda n=count: len(otter.state.transcript) > n)
        await world.run(1.5)
        disturb()
        await world.run(16)
        disturb()
        for box in boxes[1:]:
            world.unmute(box)
        await world.until(lambda: idle(otter), 300)
        answers.append(otter.answer)
    return answers
