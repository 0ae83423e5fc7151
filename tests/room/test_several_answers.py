"""A device that holds the whole model writes several answers at once, and nobody can tell from their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.prompt.ask import AssistantMessage, UserMessage
from app.room import intents as it
from app.room.api.events import AskStream, Queued, Reason, Refusal
from app.room.planner import SplitMode
from app.room.state import Exchange, Phase
from tests.room.api.asking import Heard, ToolWorld, asked, listen, said, until
from tests.room.api.test_asks import stalled
from tests.room.test_rooms import ask as ask_room
from tests.room.toy import ToyCompute
from tests.room.world import EXACT, Box

QUESTIONS = ("One?", "And two?", "Or three?", "What of four?")
LONG = 120


class WideWorld(ToolWorld):
    """Whole models keep four conversations."""

    def compute(self) -> ToyCompute:
        return ToyCompute(lanes=4)


@pytest.fixture
async def world() -> AsyncIterator[WideWorld]:
    made = WideWorld()
    yield made
    await made.close()


async def alone(*texts: str, most: int = LONG) -> list[str]:
    """What a room says to programs that ask one after another, each in a room of its own."""
    found: list[str] = []
    for text in texts:
        world = ToolWorld()
        (box,) = await world.started(8)
        found.append((await asked(world, box, said(text, most_tokens=most))).text)
        await world.close()
    return found


def asks(box: Box, *texts: str, most: int = LONG) -> list[tuple[AskStream, Heard]]:
    streams = [box.room.answers.ask(said(text, most_tokens=most)) for text in texts]
    return [(stream, listen(stream)) for stream in streams]


async def begun(world: ToolWorld, *all_heard: Heard) -> None:
    await until(world, lambda: all(len(heard.text) > 3 for heard in all_heard))


def live(box: Box) -> Exchange | None:
    return box.state.live


async def test_four_programs_are_answered_at_once_as_each_alone(world: WideWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    expected = await alone(*QUESTIONS)
    gate = stalled(otter)
    heard = [one for _, one in (*asks(otter, *QUESTIONS[:2]), *asks(heron, *QUESTIONS[2:]))]
    await until(world, lambda: all(one.events for one in heard))
    gate.set()
    await until(world, lambda: all(one.over for one in heard))
    assert [one.text for one in heard] == expected
    assert sum(len(sequences) == 4 for sequences in otter.compute.passes) > LONG / 2


async def test_a_person_and_programs_beside_each_other(world: WideWorld) -> None:
    expected = await alone(*QUESTIONS[:2])
    quiet = ToolWorld()
    (other,) = await quiet.started(8)
    chat = [await ask_room(quiet, other, text) for text in ("First?", "Second?")]
    await quiet.close()
    (otter,) = await world.started(8)
    first = asks(otter, *QUESTIONS[:2])
    got = [await person_asks(world, otter, "First?"), await person_asks(world, otter, "Second?")]
    await until(world, lambda: all(heard.over for _, heard in first))
    assert (got, [heard.text for _, heard in first]) == (chat, expected)


async def test_a_person_who_waits_for_people_lets_programs_pass(world: WideWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    otter.do(it.Ask("First?"))
    await world.until(lambda: bool(otter.answer))
    heron.do(it.Ask("Second?"))
    await world.until(lambda: heron.state.my_position == 1)
    ((_, program),) = asks(heron, QUESTIONS[0], most=8)
    await until(world, lambda: program.over)
    assert not any(isinstance(event, Queued) for event in program.events)
    assert (heron.state.my_position, len(program.text)) == (1, 8)
    await world.until(lambda: [bool(x.answer) and not x.live for x in persons(otter)] == [True, True])
    assert [exchange.question for exchange in persons(otter)] == ["First?", "Second?"]


async def person_asks(world: WideWorld, box: Box, text: str) -> str:
    box.do(it.Ask(text))
    await world.until(lambda: bool(persons(box)) and persons(box)[-1].question == text and not persons(box)[-1].live)
    return persons(box)[-1].answer


def persons(box: Box) -> list[Exchange]:
    return [exchange for exchange in box.state.transcript if not exchange.client]


async def test_who_finds_no_lane_free_waits_in_turn(world: WideWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    running = [one for box in (otter, heron) for one in asks(box, *QUESTIONS[:2], most=1_500)]
    await begun(world, *(heard for _, heard in running))
    waiting = list[Heard]()
    for text in QUESTIONS[2:]:
        waiting += [heard for _, heard in asks(heron, text, most=8)]
        await until(world, lambda last=waiting[-1]: bool(last.events))
    assert [heard.events for heard in waiting] == [[Queued(0)], [Queued(1)]]
    assert otter.state.queue_length == 2
    ((_, refused),) = asks(heron, "No more?")
    await until(world, lambda: refused.over)
    assert refused.refused.code is Refusal.QUEUE
    running[1][0].close()
    await until(world, lambda: all(heard.over for heard in waiting))
    assert [len(heard.text) for heard in waiting] == [8, 8]
    assert not any(heard.over for _, heard in running)
    for stream, _ in running:
        stream.close()


async def test_what_is_stopped_is_the_one_that_was_meant(world: WideWorld) -> None:
    (otter,) = await world.started(8)
    expected = await alone(QUESTIONS[1])
    (one, first), (_, second) = asks(otter, *QUESTIONS[:2])
    await begun(world, first, second)
    one.close()
    otter.do(it.Ask("A person asks."))
    await world.until(lambda: live(otter) is not None and bool(otter.answer) and not otter.state.transcript[-1].client)
    otter.do(it.Stop())
    await world.until(lambda: not persons(otter)[-1].live)
    assert len(persons(otter)[-1].answer) < 150
    await until(world, lambda: second.over)
    assert second.text == expected[0]
    assert second.ended.reason is Reason.MOST_TOKENS
    assert not first.over


async def test_without_a_persons_answer_a_stop_is_for_the_one_on_the_screens(world: WideWorld) -> None:
    (otter,) = await world.started(8)
    (_, first), (_, second) = asks(otter, *QUESTIONS[:2])
    await begun(world, first, second)
    shown = live(otter)
    assert shown is not None
    stopped, other = (first, second) if shown.question == QUESTIONS[0] else (second, first)
    otter.do(it.Stop())
    await until(world, lambda: first.over and second.over)
    assert (stopped.ended.reason, other.ended.reason) == (Reason.ABORTED, Reason.MOST_TOKENS)


async def test_screens_show_the_persons_answer_and_then_what_was_written_beside_it(world: WideWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    programs = [heard for _, heard in asks(otter, *QUESTIONS[:2], most=40)]
    await begun(world, *programs)
    heron.do(it.Ask("A person asks."))
    await world.until(lambda: bool(persons(heron)) and bool(persons(heron)[-1].answer))
    for box in (otter, heron):
        shown = live(box)
        assert shown is not None
        assert shown.question == "A person asks."
    await until(world, lambda: all(heard.over for heard in programs))
    await world.until(lambda: live(otter) is live(heron) is None)
    for box in (otter, heron):
        assert {x.question: x.answer for x in box.state.transcript if x.client} == {
            text: heard.text for text, heard in zip(QUESTIONS, programs, strict=False)
        }
        assert len(persons(box)[-1].answer) == 150
        assert box.state.phase is Phase.ONLINE


async def test_a_new_chat_may_begin_while_programs_are_answered(world: WideWorld) -> None:
    (otter,) = await world.started(8)
    first = await ask_room(world, otter, "Who are you?")
    ((_, program),) = asks(otter, QUESTIONS[0])
    await begun(world, program)
    otter.do(it.NewChat())
    await world.until(lambda: not persons(otter))
    assert await person_asks(world, otter, "Who are you?") == first
    await until(world, lambda: program.over)
    assert program.ended.reason is Reason.MOST_TOKENS


@pytest.mark.parametrize("hybrid", [False, True], ids=["dense", "hybrid"])
async def test_all_answers_go_on_when_the_gpu_is_lost(world: WideWorld, hybrid: bool) -> None:
    expected = await alone(*QUESTIONS[:3])
    (otter,) = await world.room(8)
    if hybrid:
        otter.do(it.ChooseModel("toy-hybrid"))
    otter.do(it.Start())
    await world.until(lambda: otter.state.phase is Phase.ONLINE)
    heard = [one for _, one in asks(otter, *QUESTIONS[:3])]
    await begun(world, *heard)
    otter.compute.lost = True
    await until(world, lambda: all(one.over for one in heard))
    assert [one.text for one in heard] == expected
    assert len(otter.compute.loads) == 2


async def test_another_model_ends_all_answers(world: WideWorld) -> None:
    (otter,) = await world.started(8)
    heard = [one for _, one in asks(otter, *QUESTIONS[:3], most=1_500)]
    await begun(world, *heard)
    otter.do(it.ChooseModel("toy-b"))
    otter.do(it.Start())
    await until(world, lambda: all(one.over for one in heard))
    assert {one.ended.reason for one in heard} == {Reason.FAILED}
    await world.until(lambda: otter.state.phase is Phase.ONLINE)
    assert len((await asked(world, otter, said("Hello?"))).text) == 24


async def test_a_split_room_writes_one_answer_at_a_time(world: WideWorld) -> None:
    otter, heron = await world.started(2, 2)
    assert otter.state.devices[1].layers is not None
    (_, first), (_, second) = asks(otter, *QUESTIONS[:2])
    await begun(world, first)
    assert second.events == [Queued(0)]
    await until(world, lambda: second.over)
    assert first.over
    assert otter.compute.passes == heron.compute.passes == []


async def test_answers_of_a_room_that_is_split_meanwhile_are_finished_in_turn(world: WideWorld) -> None:
    (otter,) = await world.started(4)
    heard = [one for _, one in asks(otter, *QUESTIONS[:3], most=400)]
    await begun(world, *heard)
    await world.join("heron", 4, otter)
    before = [one.text for one in heard]
    assert not any(one.over for one in heard)
    otter.do(it.ChangeSettings(replace(otter.state.settings, split=SplitMode.MEMORY)))
    otter.do(it.Redeal())
    await until(world, lambda: all(one.over for one in heard))
    assert otter.state.devices[1].layers is not None
    assert [len(one.text) for one in heard] == [400] * 3
    assert [one.text.startswith(start) for one, start in zip(heard, before, strict=True)] == [True] * 3


@pytest.mark.parametrize("model", ["toy", "toy-hybrid"])
async def test_more_programs_than_lanes_keep_their_conversations(world: WideWorld, model: str) -> None:
    """Six of them in turn; what was parked goes on without its prompt being read again."""
    (otter,) = await world.room(8, settings=replace(EXACT, checkpoints=6))
    otter.do(it.ChooseModel(model))
    otter.do(it.Start())
    await world.until(lambda: otter.state.phase is Phase.ONLINE)
    begins = [f"{number} asks: " + f"{number}" * 90 for number in range(6)]
    first: list[str] = []
    for some in (begins[:3], begins[3:]):
        heard = [one for _, one in asks(otter, *some, most=10)]
        await until(world, lambda heard=heard: all(one.over for one in heard))
        first += [one.text for one in heard]
    for begin, text in zip(begins, first, strict=True):
        turns = (UserMessage(begin), AssistantMessage(text), UserMessage("And now?"))
        again = await asked(world, otter, replace(said("", most_tokens=10), messages=turns))
        assert again.ended.usage.reused > len(begin)


async def test_a_stop_on_its_way_is_for_the_answer_that_was_seen(world: WideWorld) -> None:
    """The person's answer ends meanwhile, and a program's takes its place on the screens."""
    world.network.latency = 0.15
    _, heron = await world.started(8, 0.5)
    ((_, program),) = asks(heron, "Program?", most=1500)
    await begun(world, program)
    heron.do(it.Ask("Person?"))
    await world.until(lambda: bool(live(heron)) and len(live(heron).answer) > 100)  # type: ignore[union-attr]
    heron.do(it.Stop())
    await world.until(lambda: live(heron) is not None and live(heron).question != "Person?")  # type: ignore[union-attr]
    await world.run(3)
    assert not program.over


async def test_what_is_written_again_waits_for_a_lane_before_all_others(world: WideWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    await ask_room(world, otter, "First?")
    runs = [run for box in (otter, heron) for run in asks(box, *QUESTIONS[:2], most=1500)]
    await begun(world, *(heard for _, heard in runs))
    (late,) = asks(heron, "Late?", most=4)
    otter.do(it.Regenerate())
    await world.run(2)
    assert live(otter) is None or live(otter).question != "First?"  # type: ignore[union-attr]
    runs[0][0].close()
    await world.until(lambda: bool(live(otter)) and live(otter).question == "First?" and bool(live(otter).answer))  # type: ignore[union-attr]
    assert not late[1].text
