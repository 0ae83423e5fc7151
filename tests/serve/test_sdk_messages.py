"""Messages with Anthropic's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anthropic
import pytest

from app.prompt.ask import AssistantMessage, Call, Choice, ToolMessage, UserMessage
from app.prompt.folding import BESIDE
from app.room.api.events import Ended, Reason, Refusal
from app.serve.signature import signed
from tests.serve.scripted import USAGE, ScriptedAnswers, Serving, answer, call, reasoning, refused, words

HI = [{"role": "user", "content": "Hi"}]
WEATHER = {
    "name": "weather",
    "description": "The weather of a place",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
THOUGHT = answer(reasoning("Two", " places"), words("\n"), words("I look."), call(0, "weather", '{"place":', '"Rome"}'))
THINK = {"type": "enabled", "budget_tokens": 1_024}


@pytest.fixture
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Serving]:
    async with Serving(ScriptedAnswers(*getattr(request, "param", ()))) as serving:
        yield serving


def client_of(serving: Serving) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=serving.url, api_key="any", max_retries=0)


async def test_an_answer_at_once(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.messages.create(model="claude", max_tokens=100, messages=HI, stop_sequences=["END"])
    assert [block.text for block in done.content if block.type == "text"] == ["Hello"]
    assert (done.stop_reason, done.model) == ("end_turn", "pooled/qwen3-1.7b")
    assert (done.usage.input_tokens, done.usage.cache_read_input_tokens, done.usage.output_tokens) == (8, 12, 7)
    ask = served.answers.asked
    assert (ask.messages, ask.most_tokens, ask.stops) == ((UserMessage("Hi"),), 100, ("END",))
    assert (ask.client, ask.sampling) == ("Anthropic for Python", None)


@pytest.mark.parametrize("served", [[THOUGHT]], indirect=True)
async def test_thinking_and_calls_streamed_and_at_once_are_the_same(served: Serving) -> None:
    options = {"model": "c", "max_tokens": 2_000, "messages": HI, "tools": [WEATHER], "thinking": THINK}
    async with client_of(served) as client:
        async with client.messages.stream(**options) as stream:
            streamed = await stream.get_final_message()
        whole = await client.messages.create(**options)
    for done in (streamed, whole):
        thinking, text, use = done.content
        assert (thinking.type, thinking.thinking) == ("thinking", "Two places")
        assert thinking.signature == signed("Two places")
        assert (text.type, text.text) == ("text", "\nI look.")
        assert (use.type, use.name, use.input) == ("tool_use", "weather", {"place": "Rome"})
        assert done.stop_reason == "tool_use"
        assert done.usage.cache_read_input_tokens == 12
    assert served.answers.asked.thinking.budget == 1_024


@pytest.mark.parametrize("served", [[THOUGHT]], indirect=True)
async def test_reasoning_comes_back_in_its_signature(served: Serving) -> None:
    thinking = {**THINK, "display": "omitted"}
    async with client_of(served) as client:
        options = {"model": "c", "max_tokens": 2_000, "tools": [WEATHER], "thinking": thinking}
        first = await client.messages.create(messages=HI, **options)
        assert first.content[0].thinking == ""
        use = next(block for block in first.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": use.id, "content": "warm", "is_error": True}
        beside = {"type": "text", "text": "Go on."}
        turns = [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result, beside]}]
        await client.messages.create(messages=[*HI, *turns], **options)
    said, gave = served.answers.asked.messages[1:]
    assert said == AssistantMessage("\nI look.", (Call("weather", {"place": "Rome"}),), "Two places")
    assert gave == ToolMessage(f"The tool failed: warm\n\n{BESIDE.format(text='Go on.')}")


async def test_the_block_that_tells_who_pays_is_dropped(served: Serving) -> None:
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=00000;"},
        {"type": "text", "text": "You help."},
        {"type": "text", "text": "Be brief."},
    ]
    async with client_of(served) as client:
        await client.messages.create(model="c", max_tokens=9, messages=HI, system=system)
    assert served.answers.asked.system == "You help.\n\nBe brief."


async def test_choices(served: Serving) -> None:
    async with client_of(served) as client:
        for choice in ({"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "weather"}):
            await client.messages.create(model="c", max_tokens=9, messages=HI, tools=[WEATHER], tool_choice=choice)
            assert served.answers.asked.form.choice is Choice.REQUIRED
            assert served.answers.asked.form.most_calls == 1
        await client.messages.create(
            model="c", max_tokens=9, messages=HI, tools=[WEATHER], tool_choice={"type": "none"}
        )
    assert served.answers.asked.tools == ()


async def test_tokens_are_counted(served: Serving) -> None:
    async with client_of(served) as client:
        counted = await client.messages.count_tokens(model="c", messages=[{"role": "user", "content": "one two three"}])
    assert counted.input_tokens == 3


@pytest.mark.parametrize("served", [[answer(words('{"a":', "1}"))]], indirect=True)
async def test_a_schema(served: Serving) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    async with client_of(served) as client:
        await client.messages.create(
            model="c", max_tokens=9, messages=HI, output_config={"format": {"type": "json_schema", "schema": schema}}
        )
    form = served.answers.asked.form.format
    assert form
    assert form.schema == schema


@pytest.mark.parametrize("served", [[answer(words("Hel"), ended=Ended(Reason.ABORTED, USAGE))]], indirect=True)
async def test_a_stop_in_the_room_is_an_error(served: Serving) -> None:
    async with client_of(served) as client:
        with pytest.raises(anthropic.APIStatusError) as whole:
            await client.messages.create(model="c", max_tokens=9, messages=HI)
        async with client.messages.stream(model="c", max_tokens=9, messages=HI) as stream:
            with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
                await stream.get_final_message()
    assert whole.value.status_code == 529


@pytest.mark.parametrize("served", [[refused(Refusal.CONTEXT, tokens=5_000, most=4_064)]], indirect=True)
async def test_a_prompt_that_is_too_long_says_by_how_much(served: Serving) -> None:
    async with client_of(served) as client:
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 5000 tokens > 4064 maximum"):
            await client.messages.create(model="c", max_tokens=9, messages=HI)


async def test_models_in_anthropics_shape(served: Serving) -> None:
    async with client_of(served) as client:
        listed = await client.models.list()
    assert [(each.id, each.display_name) for each in listed.data] == [("pooled/qwen3-1.7b", "Qwen3 1.7B")]
