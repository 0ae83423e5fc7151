"""Whole rooms on a virtual clock: the same words as one device, through losses, returns and re-deals."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.prompt.chat import AssistantTurn, UserTurn
from app.room import intents as it
from app.room import messages as m
from app.room.frame import Frame, FrameKind
from app.room.planner import LeftOut
from app.room.settings import Visibility
from app.room.state import Phase
from tests.room.toy import LANGUAGE, LAYERS, one_device
from tests.room.world import Box, World

MOST = 150
META = {"ua": "Device", "webgpu": 1, "contribGB": 3}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def prompt(*turns: UserTurn | AssistantTurn) -> list[int]:
    return LANGUAGE.chat.render(turns)


def words(ids: list[int]) -> str:
    return bytes(ids).decode()


def cuts(box: Box) -> list[int]:
    ends = sorted(d.layers[1] for d in box.state.devices if d.layers)
    assert ends[-1] == LAYERS
    return ends[:-1]


def idle(*boxes: Box) -> bool:
    return all(b.state.phase is Phase.ONLINE and b.state.transcript and not b.state.live for b in boxes)


async def ask(world: World, box: Box, text: str) -> str:
    count = len(box.state.transcript)
    box.do(it.Ask(text))
    await world.until(lambda: len(box.state.transcript) > count and idle(box))
    return box.answer


@pytest.mark.parametrize("pledges", [(4,), (2, 3), (1, 1, 2), (1, 1, 1, 1)], ids=len)
async def test_a_room_says_what_one_device_says(world: World, pledges: tuple[float, ...]) -> None:
    boxes = await world.started(*pledges)
    assert all(device.layers for device in boxes[0].state.devices)
    answer = await ask(world, boxes[0], "Why is the sky blue, and since when?")
    expected = one_device(prompt(UserTurn("Why is the sky blue, and since when?")), MOST, cuts(boxes[0]))
    assert answer == words(expected)
    await world.until(lambda: idle(*boxes))
    assert {box.answer for box in boxes} == {answer}
    assert boxes[-1].state.transcript[-1].stats.startswith("150 tok")


async def test_a_follow_up_reads_only_what_is_new_and_is_exact(world: World) -> None:
    otter, heron = await world.started(2, 3)
    first = await ask(world, heron, "One?")
    before = otter.compute.prompt_columns
    second = await ask(world, heron, "Two?")
    turns = (UserTurn("One?"), AssistantTurn(tuple(first.encode())), UserTurn("Two?"))
    new = len(prompt(*turns)) - len(prompt(UserTurn("One?"))) - len(first) + 1
    assert otter.compute.prompt_columns - before == new - 1
    assert second != first
    assert otter.state.speed.reused == len(prompt(UserTurn("One?"))) + len(first) - 1


async def test_continue_is_the_same_as_a_longer_answer(world: World) -> None:
    otter, heron = await world.started(2, 3)
    short = await ask(world, heron, "Go on.")
    assert heron.state.transcript[-1].capped
    heron.do(it.Continue())
    await world.until(lambda: idle(heron) and len(heron.answer) > len(short))
    expected = one_device(prompt(UserTurn("Go on.")), 2 * MOST, cuts(otter))
    assert heron.answer == words(expected)
    assert len(heron.state.transcript) == 1


async def test_regenerate_asks_again(world: World) -> None:
    otter, heron = await world.started(2, 3)
    first = await ask(world, heron, "Once more?")
    heron.do(it.Regenerate())
    await world.until(lambda: len(heron.state.transcript) == 2 and idle(heron))
    assert [item.replaced for item in heron.state.transcript] == [True, False]
    assert heron.answer == first
    assert otter.state.transcript[0].replaced


async def test_stop_ends_after_the_word_in_flight(world: World) -> None:
    world.network.latency = 0.05
    otter, heron = await world.started(2, 3)
    heron.do(it.Ask("Talk!"))
    await world.until(lambda: bool(heron.state.live and len(heron.state.live.answer) > 5))
    heron.do(it.Stop())
    assert await world.until(lambda: idle(heron, otter)) < 1
    assert 5 < len(heron.answer) < 20
    assert "stopped" in heron.state.transcript[-1].stats
    partial = otter.answer
    follow = await ask(world, otter, "And now?")
    assert follow
    assert otter.state.transcript[0].answer == partial


async def test_only_the_asker_or_the_model_host_may_stop(world: World) -> None:
    world.network.latency = 0.05
    otter, heron, finch = await world.started(1, 1, 2)
    heron.do(it.Ask("Talk!"))
    await world.until(lambda: bool(finch.state.live))
    assert not finch.state.can_stop
    finch.do(it.Stop())
    await world.run(1)
    assert finch.state.live
    otter.do(it.Stop())
    await world.until(lambda: idle(finch))


async def test_questions_wait_their_turn(world: World) -> None:
    world.network.latency = 0.02
    otter, heron = await world.started(2, 3)
    for text in ("A?", "B?", "C?", "D?"):
        heron.do(it.Ask(text))
    await world.until(lambda: heron.state.my_position == 2)
    assert heron.state.queue_length == otter.state.queue_length == 2
    assert "Two of your questions" in heron.state.notices[-1].text
    await world.until(lambda: len(heron.state.transcript) == 3 and idle(heron, otter))
    assert [item.question for item in otter.state.transcript] == ["A?", "B?", "C?"]
    assert (otter.state.queue_length, heron.state.my_position) == (0, 0)


async def test_questions_are_refused_with_a_reason_without_a_model(world: World) -> None:
    _, heron = await world.room(2, 3)
    heron.do(it.Ask("Hello?"))
    await world.settle()
    assert heron.state.notices[-1].text == "No model runs in this room yet."


async def test_a_newcomer_reads_what_was_said_and_may_ask(world: World) -> None:
    otter, _ = await world.started(2, 3)
    await ask(world, otter, "One?")
    wren = await world.join("wren", 4, otter, gpu=False)
    await world.until(lambda: idle(wren))
    assert [item.question for item in wren.state.transcript] == ["One?"]
    assert [d.layers for d in wren.state.devices] == [d.layers for d in otter.state.devices]
    await ask(world, wren, "Two?")
    assert otter.state.transcript[-1].asker == "wren"


async def test_a_short_room_starts_nothing_and_says_who_could_help(world: World) -> None:
    otter, heron = await world.room(1, 1)
    heron.do(it.Start())
    await world.settle()
    assert otter.state.phase is Phase.ROOM
    assert "1.2 GB short for Toy. otter or heron could lend it." in heron.state.notices[-1].text
    assert not otter.compute.loads
    heron.do(it.SetPledge(3))
    await world.until(lambda: otter.state.pooled_gb == 4)
    assert otter.state.can_start


async def test_a_failed_load_stops_the_start_for_everybody(world: World) -> None:
    otter, heron = await world.room(2, 3)
    heron.compute.fail_load = True
    otter.do(it.Start())
    await world.until(lambda: bool(heron.state.notices))
    await world.settle()
    for box in (otter, heron):
        assert box.state.phase is Phase.ROOM
        assert "heron could not load its layers: The GPU is full." in box.state.notices[-1].text
    assert otter.compute.part is None
    heron.compute.fail_load = False
    otter.do(it.Start())
    await world.until(lambda: heron.state.phase is Phase.ONLINE)


async def test_a_device_that_leaves_is_told_at_once_and_the_answer_goes_on(world: World) -> None:
    world.network.latency = 0.02
    otter, heron, finch = await world.started(2, 3, 3)
    assert finch.state.my_device
    assert finch.state.my_device.out is LeftOut.UNNEEDED
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    shown = otter.answer
    heron.do(it.Leave())
    assert await world.until(lambda: finch.state.phase is Phase.REDEALING) < 0.5
    await world.until(lambda: idle(otter, finch))
    assert otter.answer.startswith(shown)
    assert len(otter.answer) == MOST
    assert finch.answer == otter.answer
    # The same cuts again, so not one word differs from an undisturbed answer.
    assert otter.answer == words(one_device(prompt(UserTurn("Long story?")), MOST, cuts(otter)))
    assert heron.state.phase is Phase.START


async def test_a_killed_device_is_shown_held_dropped_and_dealt_around(world: World) -> None:
    world.network.latency = 0.02
    otter, heron, finch = await world.started(2, 3, 3)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    world.kill(heron)
    assert await world.until(lambda: otter.state.phase is Phase.HELD) <= 5
    await world.settle()
    await world.until(lambda: finch.state.phase is Phase.HELD, 0.2)
    assert finch.state.held_by == "heron"
    assert await world.until(lambda: finch.state.phase is Phase.DEGRADED) <= 12
    assert finch.state.trouble == "heron left (layers 4–6)."
    assert any(device.away for device in finch.state.devices)
    assert 50 < await world.until(lambda: otter.state.phase is Phase.ANSWERING) < 65
    await world.until(lambda: idle(otter, finch))
    assert otter.answer == words(one_device(prompt(UserTurn("Long story?")), MOST, cuts(otter)))


async def test_a_device_that_answers_again_ends_the_hold(world: World) -> None:
    world.network.latency = 0.02
    otter, heron = await world.started(2, 3)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    world.mute(heron)
    await world.until(lambda: otter.state.phase is Phase.HELD)
    world.unmute(heron)
    assert await world.until(lambda: otter.state.phase is Phase.ANSWERING) < 3
    await world.until(lambda: idle(otter))
    assert otter.answer == words(one_device(prompt(UserTurn("Long story?")), MOST, cuts(otter)))
    assert len(heron.compute.loads) == 1


async def test_stop_gives_a_held_answer_up(world: World) -> None:
    world.network.latency = 0.02
    otter, heron = await world.started(2, 3)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    world.mute(heron)
    await world.until(lambda: otter.state.phase is Phase.HELD)
    otter.do(it.Stop())
    await world.until(lambda: otter.state.live is None, 0.5)
    assert len(otter.answer) > 20


async def test_idle_silence_is_on_every_screen_in_time(world: World) -> None:
    otter, heron, finch = await world.started(1, 1, 2)
    await world.run(5)
    world.mute(heron)

    def seen(box: Box) -> bool:
        return any(d.silent for d in box.state.devices if d.name == "heron")

    assert await world.until(lambda: seen(otter) and seen(finch)) <= 10
    world.unmute(heron)
    await world.until(lambda: not seen(otter) and not seen(finch), 6)
    assert otter.state.phase is Phase.ONLINE


async def test_a_returning_device_gets_its_place_and_its_layers_back(world: World) -> None:
    world.network.latency = 0.02
    otter, heron, finch = await world.started(1, 1, 2)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    world.mute(heron)
    await world.until(lambda: otter.state.phase is Phase.DEGRADED)
    await world.run(20)
    world.unmute(heron)
    assert await world.until(lambda: otter.state.phase is Phase.ANSWERING) < 20
    await world.until(lambda: idle(otter, finch, heron))
    assert otter.answer == words(one_device(prompt(UserTurn("Long story?")), MOST, cuts(otter)))
    assert len(heron.compute.loads) == 1
    assert heron.answer == otter.answer


async def test_a_room_too_small_after_a_loss_keeps_what_was_said_and_says_why(world: World) -> None:
    world.network.latency = 0.02
    otter, heron = await world.started(2, 3)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    shown = otter.answer
    heron.do(it.Leave())
    await world.until(lambda: otter.state.phase is Phase.ROOM, 2)
    assert otter.state.live is None
    assert otter.answer.startswith(shown)
    assert any("GB short for Toy" in notice.text for notice in otter.state.notices)
    assert otter.compute.part is None


async def test_a_late_device_is_offered_and_dealt_in_while_an_answer_runs(world: World) -> None:
    world.network.latency = 0.02
    otter, *_ = await world.started(4)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    wren = await world.join("wren", 6, otter)
    await world.until(lambda: wren.answer == otter.answer != "")
    assert otter.state.redeal_reason == "wren could take layers too."
    assert otter.state.devices[1].out is LeftOut.LATE
    otter.do(it.SetPledge(1))
    otter.do(it.Redeal())
    await world.until(lambda: idle(otter, wren))
    assert [d.layers for d in wren.state.devices] == [(1, 1), (2, 6)]
    assert len(otter.answer) == MOST
    assert wren.answer == otter.answer


async def test_two_devices_that_lost_each_other_connect_again(world: World) -> None:
    world.network.latency = 0.02
    otter, heron, finch = await world.started(1, 1, 2)
    otter.do(it.Ask("Long story?"))
    await world.until(lambda: bool(otter.state.live and len(otter.state.live.answer) > 20))
    between = [
        link for link in world.network.links if "pooled" not in link.me + link.peer_id and link.open and link.dialed
    ]
    assert len(between) == 1
    between[0]._closed("failed")
    assert await world.until(lambda: otter.state.phase is Phase.DEGRADED) < 1
    assert await world.until(lambda: otter.state.phase is Phase.ANSWERING) < 2
    await world.until(lambda: idle(otter, heron, finch))
    assert otter.answer == words(one_device(prompt(UserTurn("Long story?")), MOST, cuts(otter)))
    assert len(heron.compute.loads) == len(finch.compute.loads) == 1


async def test_an_answer_that_begins_while_a_device_is_silent_is_held_at_once(world: World) -> None:
    otter, heron = await world.started(2, 3)
    world.mute(heron)
    await world.until(lambda: any(d.silent for d in otter.state.devices))
    otter.do(it.Ask("Anybody?"))
    await world.until(lambda: otter.state.phase is Phase.HELD, 1)
    world.unmute(heron)
    await world.until(lambda: idle(otter))
    assert otter.answer == words(one_device(prompt(UserTurn("Anybody?")), MOST, cuts(otter)))


async def test_a_question_that_does_not_fit_fails_alone(world: World) -> None:
    otter, heron = await world.started(2, 3)
    heron.do(it.Ask("x" * 7000))
    await world.until(lambda: idle(heron))
    failed = heron.state.transcript[-1]
    assert failed.failed
    assert "of 2048 tokens" in failed.stats
    answer = await ask(world, heron, "Short?")
    assert answer == words(one_device(prompt(UserTurn("Short?")), MOST, cuts(otter)))


async def test_a_stop_while_the_prompt_is_read_stops_reading(world: World) -> None:
    world.network.latency = 0.3
    otter, heron = await world.started(2, 3)
    heron.do(it.Ask("x" * 1500))
    await world.until(lambda: heron.state.live is not None)
    heron.do(it.Stop())
    await world.until(lambda: idle(heron, otter), 5)
    assert heron.answer == ""
    assert otter.compute.prompt_columns < 600
    world.network.latency = 0
    answer = await ask(world, heron, "Short?")
    assert answer == words(one_device(prompt(UserTurn("Short?")), MOST, cuts(otter)))


async def test_speed_reaches_every_screen(world: World) -> None:
    world.network.latency = 0.02
    otter, heron = await world.started(2, 3)
    heron.do(it.Ask("Fast?"))
    await world.until(lambda: bool(heron.state.live and len(heron.state.live.answer) > 60))
    for box in (otter, heron):
        assert box.state.speed.tokens > 10
        assert 5 < box.state.speed.tokens_per_second < 25
        assert box.state.speed.wire_ms > 30
    await world.until(lambda: idle(heron))
    assert heron.state.speed.context_used > MOST


@pytest.mark.parametrize("seed", range(6))
async def test_trouble_of_any_kind_changes_no_word(world: World, seed: int) -> None:
    """Silence, drops, returns and re-deals at random moments: the owner sees each word once, in order."""
    dice = random.Random(seed)
    world.network.latency = 0.02
    boxes = await world.started(1, 1, 2)
    otter = boxes[0]
    otter.do(it.Ask("Through the storm?"))
    expected = words(one_device(prompt(UserTurn("Through the storm?")), MOST, cuts(otter)))
    for _ in range(5):
        await world.run(dice.uniform(0.2, 1.0))
        victim = dice.choice(boxes[1:])
        world.mute(victim)
        await world.run(dice.choice([0.5, 3.0, 6.0, 14.0, 20.0]))
        world.unmute(victim)
        shown = otter.state.transcript[-1].answer
        assert expected.startswith(shown)
    await world.until(lambda: idle(otter))
    assert otter.answer == expected


async def test_a_room_without_any_gpu_says_so(world: World) -> None:
    otter = world.box("otter", gpu=False)
    otter.do(it.OpenRoom("otter", 4))
    await world.until(lambda: otter.state.invite is not None)
    heron = await world.join("heron", 4, otter, gpu=False)
    heron.do(it.Start())
    otter.do(it.Start())
    await world.settle()
    for box in (otter, heron):
        assert "has a GPU" in box.state.notices[-1].text
    world.mute(heron)
    await world.until(lambda: len(otter.state.devices) == 1, 16)


async def test_another_model_goes_on_with_what_was_said(world: World) -> None:
    otter, heron = await world.started(2, 6)
    first = await ask(world, heron, "One?")
    otter.do(it.StopStart())
    await world.until(lambda: heron.state.phase is Phase.ROOM)
    otter.do(it.ChooseModel("toy-b"))
    otter.do(it.Start())
    await world.until(lambda: heron.state.phase is Phase.ONLINE)
    assert heron.state.label == "Toy B"
    second = await ask(world, heron, "Two?")
    turns = (UserTurn("One?"), AssistantTurn(tuple(first.encode())), UserTurn("Two?"))
    assert second == words(one_device(prompt(*turns), MOST, cuts(otter)))


async def test_a_device_that_died_loading_is_dealt_less(world: World) -> None:
    otter, *_ = await world.room(1, 2, 3)
    otter.do(it.Start())
    await world.until(lambda: otter.state.phase is Phase.ONLINE)
    finch = next(d for d in otter.state.devices if d.layers and not d.creator)
    died = next(box for box in world.boxes.values() if box.name == finch.name)
    world.kill(died)
    await world.until(lambda: otter.state.phase is Phase.DEGRADED)
    assert died.transport is not None
    world.unmute(died)
    hello = {"name": died.name, "meta": META, "back": 1, "died": {"loading": 1}}
    near, far = world.network.pair("reborn", otter.state.me)
    world.network.devices[otter.state.me].on_link(far, hello)
    await world.settle()
    shares = [message for message in far.sent if message["t"] == "ai-share"]
    assert [message["gb"] for message in shares] == [1.0]
    assert near.open
    loads = [message["range"] for message in far.sent if message["t"] == "ai-load"]
    assert loads == [[5, 6]], "one layer instead of five: the third device takes the rest"


async def test_the_owner_can_put_a_device_out(world: World) -> None:
    otter, heron = await world.room(2, 3)
    otter.do(it.Disconnect(heron.state.me))
    await world.until(lambda: heron.state.phase is Phase.OVER, 1)
    assert "disconnected" in heron.state.trouble
    assert [d.name for d in otter.state.devices] == ["otter"]


async def test_typing_is_shown_for_a_moment(world: World) -> None:
    otter, heron = await world.room(2, 3)
    heron.do(it.Typing())
    heron.do(it.Typing())
    await world.until(lambda: otter.state.typing == "heron", 1)
    sent = next(link.sent for link in world.network.links if link.me == heron.state.me)
    assert sum(message["t"] == "ai-typing" for message in sent) == 1
    await world.until(lambda: otter.state.typing == "", 4)


async def test_settings_of_the_owner_survive_its_rooms(world: World) -> None:
    otter, _ = await world.room(2, 3)
    changed = replace(otter.state.settings, ask_first=False)
    otter.do(it.ChangeSettings(changed))
    otter.do(it.Leave())
    await world.until(lambda: otter.state.phase is Phase.START)
    otter.do(it.OpenRoom("otter", 2))
    await world.until(lambda: otter.state.phase is Phase.ROOM)
    assert otter.state.settings == changed


async def test_joining_can_be_given_up(world: World) -> None:
    otter = world.box("otter")
    otter.do(it.OpenRoom("otter", 4))
    await world.until(lambda: otter.state.invite is not None)
    heron = world.box("heron")
    heron.do(it.JoinRoom(otter.state.code, "heron", 4))
    await world.until(lambda: bool(otter.state.waiting))
    heron.do(it.Leave())
    await world.until(lambda: heron.state.phase is Phase.START)
    heron.do(it.JoinRoom("no code", "heron", 4))
    await world.until(lambda: heron.state.phase is Phase.ERROR)
    assert heron.state.remedy
    heron.do(it.BackToStart())
    await world.until(lambda: heron.state.phase is Phase.START)


async def test_a_new_chat_waits_for_the_answer(world: World) -> None:
    world.network.latency = 0.05
    _, heron = await world.started(2, 3)
    heron.do(it.Ask("Talk!"))
    await world.until(lambda: bool(heron.state.live and heron.state.live.answer))
    heron.do(it.NewChat())
    await world.run(0.5)
    assert heron.state.live
    assert "Stop it first" in heron.state.notices[-1].text


async def test_the_room_ends_for_everybody_when_its_owner_leaves(world: World) -> None:
    otter, heron = await world.started(2, 3)
    otter.do(it.Leave())
    await world.until(lambda: heron.state.phase is Phase.OVER, 1)
    assert heron.compute.part is None
    assert otter.state.phase is Phase.START


async def test_a_lost_owner_is_knocked_for_and_then_given_up(world: World) -> None:
    otter, heron = await world.started(2, 3)
    world.kill(otter)
    assert await world.until(lambda: heron.state.phase is Phase.RECONNECTING) <= 31
    assert await world.until(lambda: heron.state.phase is Phase.OVER) <= 61


async def test_a_second_start_is_refused_to_whoever_pressed_it(world: World) -> None:
    otter, heron = await world.room(2, 3)
    heron.compute.slow_load = asyncio.Event()
    heron.do(it.Start())
    await world.until(lambda: heron.state.phase is Phase.STARTING)
    assert heron.state.load
    assert heron.state.load.by == "heron"
    heron.do(it.Start())
    await world.run(2)
    assert "already" in heron.state.notices[-1].text
    assert otter.state.phase is Phase.STARTING
    assert [d.progress for d in heron.state.devices] == [1.0, 0.5]
    heron.compute.slow_load.set()
    await world.until(lambda: heron.state.phase is Phase.ONLINE)


async def test_names_stay_unique_and_layers_follow_them(world: World) -> None:
    otter, heron = await world.room(2, 3)
    again = world.box("heron-again")
    again.do(it.JoinRoom(otter.state.invite.link if otter.state.invite else "", "heron", 3))
    await world.until(lambda: len(otter.state.devices) == 3)
    assert [d.name for d in otter.state.devices] == ["otter", "heron", "heron 2"]
    assert again.state.my_device is not None
    assert again.state.my_device.name == "heron 2"
    assert heron.state.my_device is not None


async def test_a_dead_namesake_gives_its_name_away(world: World) -> None:
    otter, heron = await world.room(2, 3)
    world.kill(heron)
    again = world.box("heron-again")
    again.do(it.JoinRoom(otter.state.invite.link if otter.state.invite else "", "heron", 3))
    await world.until(lambda: again.state.my_device is not None, 3)
    assert [d.name for d in otter.state.devices] == ["otter", "heron"]


async def test_allow_and_deny(world: World) -> None:
    otter = world.box("otter")
    otter.do(it.OpenRoom("otter", 4))
    await world.until(lambda: otter.state.invite is not None)
    code = otter.state.code
    heron, finch = world.box("heron"), world.box("finch")
    heron.do(it.JoinRoom(code, "heron", 4))
    finch.do(it.JoinRoom(code.lower(), "finch", 4))
    await world.until(lambda: len(otter.state.waiting) == 2)
    request = otter.state.waiting[0]
    assert (request.name, request.digits, request.gb) == ("heron", "123 456", 4)
    assert heron.state.devices == ()
    otter.do(it.Allow(request.id))
    otter.do(it.Deny(otter.state.waiting[1].id))
    await world.until(lambda: heron.state.phase is Phase.ROOM and finch.state.phase is Phase.ERROR)
    assert otter.state.waiting == ()
    assert [d.name for d in otter.state.devices] == ["otter", "heron"]


async def test_hidden_text_reaches_only_whom_the_owner_allows(world: World) -> None:
    otter, heron, finch = await world.started(1, 1, 2)
    otter.do(it.ChangeSettings(replace(otter.state.settings, visibility=Visibility.ASKER)))
    answer = await ask(world, heron, "A secret?")
    await world.until(lambda: idle(otter, finch))
    assert otter.answer == answer
    hidden = finch.state.transcript[-1]
    assert (hidden.hidden, hidden.question, hidden.answer) == (True, "", "")


async def test_new_chat_forgets_everywhere(world: World) -> None:
    otter, heron = await world.started(2, 3)
    first = await ask(world, heron, "One?")
    heron.do(it.NewChat())
    await world.until(lambda: otter.state.transcript == () and heron.state.transcript == ())
    assert await ask(world, heron, "One?") == first


async def test_frames_and_words_of_strangers_are_ignored(world: World) -> None:
    otter, heron, finch = await world.started(1, 1, 2)
    assert finch.transport is not None
    assert heron.transport is not None
    link = await finch.transport.dial(heron.transport.me)
    before = heron.compute.step_columns + heron.compute.prompt_columns
    link.send_frame(Frame(FrameKind.HIDDEN, 0, 1, bytes(32)))
    link.send(m.encode(m.StartFailed(why="ha")))
    link.send(m.encode(m.Load(model="toy", range=(0, 6), ctx=64)))
    link.send({"t": "ai-load", "model": ["?"]})
    await world.run(0.5)
    assert heron.state.phase is Phase.ONLINE
    assert heron.compute.step_columns + heron.compute.prompt_columns == before
    assert len(heron.compute.loads) == 1
    answer = await ask(world, otter, "Still right?")
    assert answer == words(one_device(prompt(UserTurn("Still right?")), MOST, cuts(otter)))


async def test_no_more_than_six_prompt_rounds_are_under_way(world: World) -> None:
    world.network.latency = 0.5
    otter, heron = await world.started(2, 3)
    heron.do(it.Ask("x" * 300))
    most = 0
    model_host = otter.room._seat._creator.side.host  # type: ignore[union-attr]

    def done() -> bool:
        nonlocal most
        chain = model_host.dealing.chain
        most = max(most, len(chain.laps) if chain else 0)
        return bool(heron.state.live and heron.state.live.answer)

    await world.until(done)
    assert most == 6


async def test_a_model_that_is_taken_down_under_a_word_leaves_nothing_behind(world: World) -> None:
    """The word is on its way between two devices, and nobody will bring it home."""
    world.network.latency = 0.1
    boxes = otter, _ = await world.started(2, 2)
    otter.do(it.Ask("Tell me."))
    await world.until(lambda: bool(otter.state.live and otter.state.live.answer))
    otter.do(it.StopStart())
    await world.until(lambda: all(box.state.live is None for box in boxes), 20)
    otter.do(it.Start())
    await world.until(lambda: idle(*boxes), 60)
    assert await ask(world, otter, "And now?")
