"""Chat Completions with OpenAI's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest
from pydantic import BaseModel

from app.prompt.ask import AssistantMessage, Call, Choice, Effort, JsonFormat, ToolMessage, UserMessage
from app.room.api.events import Ended, Reason
from tests.serve.scripted import USAGE, ScriptedAnswers, Serving, answer, call, reasoning, words

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
CALLS = answer(
    reasoning("Two", " places"),
    call(0, "weather", '{"place"', ': "Rome"}'),
    call(1, "weather", '{"place": "Oslo"}'),
)
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Serving]:
    async with Serving(ScriptedAnswers(*getattr(request, "param", ()))) as serving:
        yield serving


def client_of(serving: Serving) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{serving.url}/v1", api_key="any", max_retries=0)


async def test_an_answer_at_once(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.chat.completions.create(model="gpt-5", messages=HI, temperature=0, stop=["END"], seed=7)
    assert done.choices[0].message.content == "Hello"
    assert done.choices[0].finish_reason == "stop"
    assert done.model == "pooled/qwen3-1.7b"
    assert done.usage
    assert done.usage.prompt_tokens_details
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (20, 7)
    assert done.usage.prompt_tokens_details.cached_tokens == 12
    ask = served.answers.asked
    assert ask.messages == (UserMessage("Hi"),)
    assert ask.stops == ("END",)
    assert ask.sampling
    assert (ask.sampling.temperature, ask.seed) == (0, 7)
    assert ask.client == "OpenAI for Python"


async def test_a_stream_with_usage_last(served: Serving) -> None:
    async with client_of(served) as client:
        stream = await client.chat.completions.create(
            model="m", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, None, None, "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage
    assert chunks[-1].usage.total_tokens == 27


@pytest.mark.parametrize("served", [[CALLS]], indirect=True)
async def test_calls_streamed_and_at_once_are_the_same(served: Serving) -> None:
    async with client_of(served) as client:
        async with client.chat.completions.stream(model="m", messages=HI, tools=[WEATHER]) as stream:
            streamed = await stream.get_final_completion()
        whole = await client.chat.completions.create(model="m", messages=HI, tools=[WEATHER], tool_choice="required")
    for done in (streamed, whole):
        assert done.choices[0].finish_reason == "tool_calls"
        calls = done.choices[0].message.tool_calls
        assert calls
        assert [each.function.arguments for each in calls] == ['{"place": "Rome"}', '{"place": "Oslo"}']
    assert whole.choices[0].message.model_dump()["reasoning_content"] == "Two places"
    assert served.answers.asked.form.choice is Choice.REQUIRED


@pytest.mark.parametrize("served", [[answer(call(0, "weather", "{}"))]], indirect=True)
async def test_a_named_call_ends_with_stop(served: Serving) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    async with client_of(served) as client:
        done = await client.chat.completions.create(model="m", messages=HI, tools=[WEATHER], tool_choice=choice)
    assert done.choices[0].finish_reason == "stop"
    assert done.choices[0].message.tool_calls
    form = served.answers.asked.form
    assert (form.named, form.choice, form.most_calls) == ("weather", Choice.REQUIRED, 1)


class Town(BaseModel):
    name: str
    people: int


@pytest.mark.parametrize("served", [[answer(words('{"name": "Rome",', ' "people": 3}'))]], indirect=True)
async def test_a_schema_is_parsed(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.chat.completions.parse(model="m", messages=HI, response_format=Town)
    assert done.choices[0].message.parsed == Town(name="Rome", people=3)
    form = served.answers.asked.form.format
    assert isinstance(form, JsonFormat)
    assert form.schema
    assert form.schema["required"] == ["name", "people"]


async def test_results_come_back_in_the_order_of_the_calls(served: Serving) -> None:
    made = [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Rome"}'}},
        {"id": "b", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Oslo"}'}},
    ]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        *HI,
        {"role": "assistant", "content": None, "tool_calls": made, "reasoning_content": "Hm"},
        {"role": "tool", "tool_call_id": "b", "content": "cold"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "warm"}]},
    ]
    async with client_of(served) as client:
        await client.chat.completions.create(
            model="m", messages=messages, tools=[WEATHER], reasoning_effort="low", parallel_tool_calls=False
        )
    ask = served.answers.asked
    assert ask.system == "Be brief.\n\nBe kind."
    calls = (Call("weather", {"place": "Rome"}), Call("weather", {"place": "Oslo"}))
    assert ask.messages[1:] == (AssistantMessage("", calls, "Hm"), ToolMessage("warm"), ToolMessage("cold"))
    assert (ask.thinking.on, ask.thinking.effort) == (True, Effort.LOW)
    assert (ask.form.parallel, ask.form.most_calls) == (False, 1)


@pytest.mark.parametrize("served", [[answer(words("Hel"), ended=Ended(Reason.FAILED, USAGE))]], indirect=True)
async def test_a_failure_in_the_stream_is_an_error(served: Serving) -> None:
    async with client_of(served) as client:
        stream = await client.chat.completions.create(model="m", messages=HI, stream=True)
        with pytest.raises(openai.APIError, match="could not finish"):
            _ = [chunk async for chunk in stream]


async def test_models(served: Serving) -> None:
    async with client_of(served) as client:
        listed = await client.models.list()
        one = await client.models.retrieve("pooled/qwen3-1.7b")
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-5")
    assert [each.id for each in listed.data] == [one.id]
    assert one.model_dump()["max_model_len"] == 4_096
