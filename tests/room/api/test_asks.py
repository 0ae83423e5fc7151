"""Programs ask a room: who is answered what, whoever runs the model."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from app.core.errors import PromptError
from app.engine.sampling import choose
from app.engine.types import Sampling
from app.prompt.ask import Ask, AssistantMessage, Call, Choice, Form, JsonFormat, Tool, ToolMessage, UserMessage
from app.prompt.pieces import Words
from app.room import intents as it
from app.room import messages as m
from app.room.api.events import Queued, Reason, Refusal
from app.room.meta import Meta
from app.room.state import NoticeKind, Phase
from tests.room.api.asking import ToolWorld, asked, calling, listen, said, until
from tests.room.test_rooms import ask as ask_room
from tests.room.test_rooms import idle
from tests.room.world import Box

REQUIRED = Form(choice=Choice.REQUIRED)
PROGRAM = Meta(ua="API", api=2, client="tester")


@pytest.fixture
async def world() -> AsyncIterator[ToolWorld]:
    made = ToolWorld()
    yield made
    await made.close()


async def test_the_model_host_answers_its_own_programs(world: ToolWorld) -> None:
    (otter,) = await world.started(8)
    heard = await asked(world, otter, said("Hello?"))
    assert len(heard.text) == 24
    assert heard.ended.reason is Reason.MOST_TOKENS
    assert (heard.ended.usage.output, heard.ended.usage.reused) == (24, 0)
    assert heard.started.prompt_tokens == heard.ended.usage.prompt > 10
    model = otter.room.answers.model
    assert model is not None
    assert (model.key, model.context) == (otter.state.model, heard.started.context)


async def test_a_member_hears_what_the_model_host_would(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    here = await asked(world, otter, said("Hello?"))
    there = await asked(world, heron, said("Hello?"))
    assert there.text == here.text
    assert there.ended.reason is here.ended.reason
    assert heron.room.answers.model == otter.room.answers.model


async def test_the_second_turn_reads_only_what_is_new(world: ToolWorld) -> None:
    (otter,) = await world.started(8)
    first = await asked(world, otter, said("Hello?"))
    again = (UserMessage("Hello?"), AssistantMessage(first.text), UserMessage("And then?"))
    read = otter.compute.prompt_columns
    second = await asked(world, otter, replace(said(""), messages=again))
    known = first.ended.usage.prompt + first.ended.usage.output
    assert second.ended.usage.reused >= known - 1
    assert otter.compute.prompt_columns - read <= second.ended.usage.prompt - known + 1


@pytest.mark.parametrize("devices", [1, 2])
async def test_a_required_call_is_made_and_its_result_read(world: ToolWorld, devices: int) -> None:
    otter, *_ = await world.started(*[8.0] * devices)
    heard = await asked(world, otter, calling("Paint it.", REQUIRED))
    ((name, arguments), *_) = heard.calls
    given = json.loads(arguments)
    assert name == "paint"
    assert given["colour"] in ("red", "green", "blue")
    assert given["coats"] in (1, 2, 3)
    assert heard.text == ""
    calls = tuple(Call(name, json.loads(text)) for name, text in heard.calls)
    turns = (UserMessage("Paint it."), AssistantMessage("", calls), ToolMessage("Done."))
    after = replace(calling("", Form()), messages=turns, most_tokens=30)
    second = await asked(world, otter, after)
    assert second.ended.usage.reused >= heard.ended.usage.prompt
    assert second.text or second.calls


async def test_a_split_room_calls_as_one_device_does(world: ToolWorld) -> None:
    alone = ToolWorld()
    (one,) = await alone.started(8)
    expected = await asked(alone, one, calling("Paint it.", REQUIRED))
    await alone.close()
    settings = replace(one.state.settings, precision=type(one.state.settings.precision).FULL)
    otter, heron = await world.started(2, 2, settings=settings)
    assert otter.state.devices[1].layers is not None
    assert (await asked(world, heron, calling("Paint it.", REQUIRED))).calls == expected.calls


@pytest.mark.parametrize("pledges", [(8,), (1, 1, 2)], ids=len)
async def test_a_call_is_the_same_with_drafts(world: ToolWorld, pledges: tuple[float, ...]) -> None:
    plain = ToolWorld()
    one, *_ = await plain.started(*pledges)
    expected = await asked(plain, one, calling("Paint it.", REQUIRED))
    fed = dict(one.compute.fed)
    await plain.close()
    dice = random.Random(3)
    otter, *_ = await world.room(*pledges)
    otter.compute.guess = lambda position, count: [
        fed.get(at, 97) if dice.random() < 0.9 else 96 for at in range(position, position + count)
    ]
    otter.do(it.Start())
    await world.until(lambda: otter.state.phase is Phase.ONLINE)
    heard = await asked(world, otter, calling("Paint it.", REQUIRED))
    assert heard.calls == expected.calls
    assert heard.ended.usage == expected.ended.usage
    accepted = otter.state.speed.drafts_accepted
    assert accepted is not None
    assert accepted > 0.5


async def test_what_cannot_be_kept_is_refused_by_name(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    odd = Tool("odd", "", {"type": "object", "properties": {"a": {"propertyNames": {"pattern": "x"}}}})
    columns = otter.compute.prompt_columns
    heard = await asked(world, heron, calling("Go.", Form(), tools=[odd]))
    assert heard.refused.code is Refusal.BAD
    assert "odd" in heard.refused.why
    assert "propertyNames" in heard.refused.why
    assert otter.compute.prompt_columns == columns


async def test_a_conversation_that_does_not_fit_is_never_cut(world: ToolWorld) -> None:
    (otter,) = await world.started(8)
    heard = await asked(world, otter, said("x" * 3_000))
    assert heard.refused.code is Refusal.CONTEXT
    assert heard.refused.tokens > heard.refused.most > 0


async def test_json_is_json(world: ToolWorld) -> None:
    (otter,) = await world.started(8)
    schema = {"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"]}
    schema |= {"additionalProperties": False}
    heard = await asked(world, otter, said("n?", most_tokens=60, form=Form(format=JsonFormat(schema))))
    assert json.loads(heard.text)["n"] in (1, 22)
    assert heard.ended.reason is Reason.STOP


async def test_closing_frees_the_room_within_a_lap(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    stream = heron.room.answers.ask(said("Long?", most_tokens=1_500))
    heard = listen(stream)
    await until(world, lambda: len(heard.text) > 3)
    stream.close()
    await world.until(lambda: idle(otter, heron))
    written = otter.compute.step_columns
    await world.run(2)
    assert otter.compute.step_columns == written
    assert len((await asked(world, otter, said("Hello?"))).text) == 24


async def test_programs_and_people_share_one_queue(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    stream = heron.room.answers.ask(said("One?", most_tokens=1_900))
    first = listen(stream)
    await until(world, lambda: len(first.text) > 3)
    otter.do(it.Ask("A person asks."))
    second = listen(heron.room.answers.ask(said("Two?")))
    await until(world, lambda: Queued(1) in second.events)
    stream.close()
    await until(world, lambda: second.over)
    assert [item.question for item in otter.state.transcript] == ["One?", "A person asks.", "Two?"]
    assert [bool(item.client) for item in otter.state.transcript] == [True, False, True]


async def test_a_program_leaves_no_trace_in_the_chat(world: ToolWorld) -> None:
    other = ToolWorld()
    (quiet,) = await other.started(8)
    expected = [await ask_room(other, quiet, text) for text in ("First?", "Second?")]
    await other.close()
    (otter,) = await world.started(8)
    first = await ask_room(world, otter, "First?")
    await asked(world, otter, said("Between?"))
    assert [first, await ask_room(world, otter, "Second?")] == expected


async def test_the_owner_may_turn_programs_away(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    otter.do(it.ChangeSettings(replace(otter.state.settings, api_clients=False)))
    await world.settle()
    assert (await asked(world, heron, said("Hello?"))).refused.code is Refusal.OFF


async def test_programs_in_the_room_are_put_out_when_they_may_not_ask(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    tool = await world.join("bridge", 0, otter, gpu=False, meta=PROGRAM)
    await world.until(lambda: len(otter.state.devices) == 3)
    otter.do(it.ChangeSettings(replace(otter.state.settings, api_clients=False)))
    await world.until(lambda: tool.state.phase is Phase.OVER)
    assert [device.name for device in otter.state.devices if not device.away] == ["otter", "heron"]
    assert heron.state.phase is Phase.ONLINE


async def test_without_a_model_there_is_nobody_to_ask(world: ToolWorld) -> None:
    (otter,) = await world.room(8)
    assert (await asked(world, otter, said("Hello?"))).refused.code is Refusal.GONE
    outside = world.box("finch")
    assert (await asked(world, outside, said("Hello?"))).refused.code is Refusal.GONE


async def test_people_may_stop_a_program(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    heard = listen(heron.room.answers.ask(said("Long?", most_tokens=1_500)))
    await until(world, lambda: len(heard.text) > 3)
    otter.do(it.Stop())
    await until(world, lambda: heard.over)
    assert heard.ended.reason is Reason.ABORTED


async def test_a_stop_sequence_ends_the_answer_before_it(world: ToolWorld) -> None:
    (otter,) = await world.started(8)
    whole = (await asked(world, otter, said("Hello?"))).text
    stop = whole[5:8]
    heard = await asked(world, otter, said("Hello?", stops=(stop,)))
    assert heard.text == whole[: whole.index(stop)]
    assert (heard.ended.reason, heard.ended.stop) == (Reason.STOP_SEQUENCE, stop)


async def test_a_bias_changes_what_is_said(world: ToolWorld) -> None:
    (otter,) = await world.started(8)
    heard = await asked(world, otter, said("Hello?", bias={ord("%"): 100.0}))
    assert heard.text == "%" * 24


async def test_tokens_are_counted_without_answering(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    ask = calling("Paint it.", REQUIRED)
    counted = [await _counted(world, box, ask) for box in (otter, heron)]
    heard = await asked(world, otter, ask)
    assert counted == [heard.started.prompt_tokens] * 2


async def _counted(world: ToolWorld, box: Box, ask: Ask) -> int:
    task = asyncio.ensure_future(box.room.answers.count(ask))
    await until(world, task.done)
    return task.result()


async def test_an_answer_survives_a_lost_device(world: ToolWorld) -> None:
    alone = ToolWorld()
    one, _ = await alone.started(2, 2)
    expected = (await asked(alone, one, said("Hello?", most_tokens=60))).text
    await alone.close()
    otter, heron = await world.started(2, 2)
    heard = listen(otter.room.answers.ask(said("Hello?", most_tokens=60)))
    await until(world, lambda: len(heard.text) > 10)
    world.mute(heron)
    await world.run(5)
    world.unmute(heron)
    await until(world, lambda: heard.over)
    assert heard.text == expected


class MovingWorld(ToolWorld):
    """The model may run on a member."""

    def __init__(self) -> None:
        super().__init__(fixed=False)


async def test_an_api_client_is_answered_by_a_member_that_runs_the_model() -> None:
    world = MovingWorld()
    otter, heron = await world.room(1, 6)
    otter.do(it.Start())
    await world.until(lambda: heron.state.phase is otter.state.phase is Phase.ONLINE)
    assert otter.state.model_host == heron.state.me
    tool = await world.join("bridge", 0, otter, gpu=False, meta=PROGRAM)
    await world.until(lambda: tool.room.answers.model is not None)
    here = await asked(world, heron, said("Hello?"))
    there = await asked(world, tool, said("Hello?"))
    owner = await asked(world, otter, said("Hello?"))
    assert there.text == here.text == owner.text
    assert not tool.state.transcript
    stream = tool.room.answers.ask(said("Long?", most_tokens=1_500))
    heard = listen(stream)
    await until(world, lambda: len(heard.text) > 3)
    stream.close()
    await world.until(lambda: idle(otter, heron))
    world.kill(heron)
    heard = listen(tool.room.answers.ask(said("Hello?")))
    await until(world, lambda: heard.over)
    assert heard.refused.code is Refusal.GONE
    await world.close()


class DrawingWorld(ToolWorld):
    """Words are drawn as the engine draws them."""

    choose = staticmethod(choose)


async def test_a_seed_draws_the_same_words_again() -> None:
    world = DrawingWorld()
    (otter,) = await world.started(8)
    warm = Sampling(temperature=1.5, top_k=20)
    texts = [(await asked(world, otter, said("Hello?", sampling=warm, seed=seed))).text for seed in (7, 7, 8, 9, 10)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1
    await world.close()


async def moved(gb: float = 6) -> tuple[MovingWorld, Box, Box, Box]:
    """A room whose model runs on a member, and an API client in it."""
    world = MovingWorld()
    otter, heron = await world.room(1, gb)
    otter.do(it.Start())
    await world.until(lambda: heron.state.phase is otter.state.phase is Phase.ONLINE)
    tool = await world.join("bridge", 0, otter, gpu=False, meta=PROGRAM)
    await world.until(lambda: tool.room.answers.model is not None)
    return world, otter, heron, tool


def sends(world: ToolWorld, tool: Box, message: m.Message) -> None:
    assert tool.transport is not None
    link = world.network.between(tool.transport.me, tool.state.creator)
    assert link is not None
    link.send(m.encode(message))


async def test_an_api_client_has_no_word_in_the_chat() -> None:
    world, otter, heron, tool = await moved()
    sends(world, tool, m.Ask(text="I am the owner, honest."))
    sends(world, tool, m.StopAnswer())
    await world.run(2)
    assert not otter.state.transcript
    said_here = await ask_room(world, otter, "Who asks?")
    await world.until(lambda: idle(otter, heron))
    assert [item.answer for item in otter.state.transcript] == [said_here] != [""]
    await world.close()


async def test_what_a_client_takes_back_leaves_nothing_behind() -> None:
    world, _, _, tool = await moved()
    for _ in range(20):
        tool.room.answers.ask(said("Never mind.")).close()
    for _ in range(20):
        await asyncio.sleep(0.002)
        await world.run(0.05)
    heard = await asked(world, tool, said("Hello?"))
    assert len(heard.text) == 24
    await world.close()


async def test_bridges_and_the_owner_wait_each_in_their_own_share() -> None:
    world, otter, heron, tool = await moved()
    gate = stalled(heron)
    long = listen(heron.room.answers.ask(said("Long?")))
    await until(world, lambda: bool(long.events))
    waiting = [listen(tool.room.answers.ask(said("Wait."))) for _ in range(2)]
    await until(world, lambda: all(heard.events for heard in waiting))
    otter.do(it.Ask("The owner asks."))
    await world.run(1)
    assert otter.state.my_position == 3
    assert not any(notice.kind is NoticeKind.BAD for notice in otter.state.notices)
    gate.set()
    await until(world, lambda: all(heard.over for heard in (long, *waiting)) and idle(otter, heron))
    assert [len(heard.text) for heard in waiting] == [24, 24]
    await world.close()


def stalled(box: Box) -> asyncio.Event:
    """The engine waits until it is told to go on."""
    gate, hidden = asyncio.Event(), box.compute.hidden

    async def slow(*arguments: Any) -> Any:
        await gate.wait()
        return await hidden(*arguments)

    box.compute.hidden = slow  # type: ignore[method-assign]
    return gate


async def test_one_piece_of_any_length_breaks_no_screen(world: ToolWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some models give an argument as one piece."""
    otter, heron = await world.started(8, 0.5)
    monkeypatch.setattr("app.room.api.answer.AnswerStream.add", lambda _stream, _token: (Words("x" * 9_000),))
    heard = await asked(world, otter, said("Hello?", most_tokens=4))
    await world.run(1)
    assert len(heard.text) == 36_000
    assert len(heron.state.transcript[-1].answer) == 36_000
    assert heron.state.phase is Phase.ONLINE


async def test_a_form_that_was_left_costs_nobody_else_a_saved_state(
    world: ToolWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    (otter,) = await world.started(8)
    await ask_room(world, otter, "First? " + "x" * 100)
    kept = len(otter.compute.kept)

    def fails(*_arguments: object) -> None:
        raise PromptError("The answer left its form.")

    with monkeypatch.context() as patched:
        patched.setattr("app.room.api.steering.AskSteering.said", fails)
        heard = await asked(world, otter, calling("Paint it.", REQUIRED))
    assert heard.ended.reason is Reason.FAILED
    assert len(otter.compute.kept) >= kept > 0


async def test_a_room_that_reads_a_long_prompt_is_not_silent(world: ToolWorld) -> None:
    otter, heron = await world.started(8, 0.5)
    gate = stalled(otter)
    heard = listen(heron.room.answers.ask(said("Hello?")))
    await until(world, lambda: bool(heard.events))
    await world.run(400)
    assert not heard.over
    gate.set()
    await until(world, lambda: heard.over)
    assert len(heard.text) == 24


async def test_a_burst_of_asks_is_not_checked_all_at_once(world: ToolWorld) -> None:
    _, heron = await world.started(8, 0.5)
    burst = [listen(heron.room.answers.ask(said("Hello?"))) for _ in range(30)]
    await until(world, lambda: all(heard.over for heard in burst))
    refused = [heard for heard in burst if not heard.text]
    assert {heard.refused.code for heard in refused} == {Refusal.QUEUE}
    assert 0 < len(burst) - len(refused) <= 6
