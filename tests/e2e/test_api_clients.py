"""The openai and anthropic SDKs and litellm in a real room of two processes: calls are made, run and answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.e2e.api_room import ServedRoom, served_room
from tests.shared import shared_file

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACES = ("Rome", "Oslo")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"place": {"type": "string", "enum": list(PLACES)}, "days": {"type": "integer", "enum": [1, 2]}},
    "required": ["place", "days"],
    "additionalProperties": False,
}
ABOUT = "What the weather will be"
QUESTION = "How warm will it be in Rome?"


def weather(place: str, days: int) -> str:
    """What the tool does."""
    assert place in PLACES
    assert days in (1, 2)
    return f"{place}: {20 + days} degrees"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def room() -> AsyncIterator[ServedRoom]:
    async with served_room(shared_file("models/nano-qwen35moe-Q8_0.gguf")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def openai(room: ServedRoom) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{room.url}/v1", api_key="any", max_retries=0, timeout=240) as client:
        yield client


async def test_the_layers_lie_on_two_devices(room: ServedRoom) -> None:
    assert sum(device.layers is not None for device in room.application.room.state.devices) == 2


async def test_openai_chat_calls_a_named_tool_and_hears_its_result(openai: AsyncOpenAI) -> None:
    tools: Any = [{"type": "function", "function": {"name": "weather", "description": ABOUT, "parameters": SCHEMA}}]
    named: Any = {"type": "function", "function": {"name": "weather"}}
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    options: dict[str, Any] = {"model": "pooled", "tools": tools, "temperature": 0, "max_tokens": 80}
    first = await openai.chat.completions.create(messages=messages, tool_choice=named, **options)
    made = first.choices[0].message
    assert made.tool_calls
    (call,) = made.tool_calls
    assert call.type == "function"
    result = weather(**json.loads(call.function.arguments))
    messages += [made.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": result}]
    second = await openai.chat.completions.create(messages=messages, **(options | {"max_tokens": 12}))
    answer = second.choices[0].message
    assert answer.content or answer.tool_calls
    assert first.usage
    assert second.usage
    assert second.usage.prompt_tokens_details
    assert (second.usage.prompt_tokens_details.cached_tokens or 0) > 0


async def test_openai_chat_streams_a_required_call(openai: AsyncOpenAI) -> None:
    tools: Any = [{"type": "function", "function": {"name": "weather", "description": ABOUT, "parameters": SCHEMA}}]
    stream = await openai.chat.completions.create(
        model="pooled", messages=[{"role": "user", "content": QUESTION}], tools=tools, tool_choice="required",
        parallel_tool_calls=False, max_tokens=80, temperature=0, stream=True, stream_options={"include_usage": True},
    )  # fmt: skip
    name, arguments, reasons, usage = "", "", [], None
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            reasons += [choice.finish_reason] if choice.finish_reason else []
            for part in choice.delta.tool_calls or []:
                assert part.function
                name += part.function.name or ""
                arguments += part.function.arguments or ""
    assert (name, reasons) == ("weather", ["tool_calls"])
    weather(**json.loads(arguments))
    assert usage
    assert usage.completion_tokens > 5


async def test_openai_responses_go_on_from_the_last(openai: AsyncOpenAI) -> None:
    tools: Any = [{"type": "function", "name": "weather", "description": ABOUT, "parameters": SCHEMA, "strict": True}]
    first = await openai.responses.create(
        model="pooled", input=QUESTION, tools=tools, tool_choice="required", parallel_tool_calls=False,
        max_output_tokens=80, temperature=0,
    )  # fmt: skip
    (call,) = [item for item in first.output if item.type == "function_call"]
    result = weather(**json.loads(call.arguments))
    given: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": result}]
    second = await openai.responses.create(
        model="pooled", input=given, previous_response_id=first.id, tools=tools, tool_choice="auto",
        max_output_tokens=12, temperature=0,
    )  # fmt: skip
    assert second.usage
    assert second.usage.input_tokens_details.cached_tokens >= (first.usage.input_tokens if first.usage else 0)
    assert second.output


async def test_openai_reads_an_answer_with_a_schema(openai: AsyncOpenAI) -> None:
    kind: Any = {"type": "json_schema", "json_schema": {"name": "forecast", "schema": SCHEMA, "strict": True}}
    done = await openai.chat.completions.create(
        model="pooled", messages=[{"role": "user", "content": QUESTION}], response_format=kind, max_tokens=240,
        temperature=0,
    )  # fmt: skip
    weather(**json.loads(done.choices[0].message.content or ""))


async def test_anthropic_calls_a_tool_and_hears_its_result(room: ServedRoom) -> None:
    tools: Any = [{"name": "weather", "description": ABOUT, "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    async with AsyncAnthropic(base_url=room.url, api_key="any", max_retries=0, timeout=240) as client:
        options: dict[str, Any] = {"model": "pooled", "tools": tools}
        choice = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
        async with client.messages.stream(max_tokens=80, messages=messages, tool_choice=choice, **options) as stream:
            first = await stream.get_final_message()
        (use,) = [block for block in first.content if block.type == "tool_use"]
        assert first.stop_reason == "tool_use"
        result = {"type": "tool_result", "tool_use_id": use.id, "content": weather(**use.input)}
        messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        counted = await client.messages.count_tokens(model="pooled", messages=messages, tools=tools)
        second = await client.messages.create(max_tokens=12, messages=messages, **options)
    read = second.usage.input_tokens + (second.usage.cache_read_input_tokens or 0)
    assert abs(counted.input_tokens - read) <= 8
    assert (second.usage.cache_read_input_tokens or 0) > 0
    assert second.content


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the library's own types
async def test_litellm_calls_a_required_tool(room: ServedRoom) -> None:
    import litellm  # takes seconds to load, and only this test needs it

    tools = [{"type": "function", "function": {"name": "weather", "description": ABOUT, "parameters": SCHEMA}}]
    done = await litellm.acompletion(
        model="openai/pooled", api_base=f"{room.url}/v1", api_key="any", tools=tools, tool_choice="required",
        messages=[{"role": "user", "content": QUESTION}], max_tokens=80, temperature=0, parallel_tool_calls=False,
    )  # fmt: skip
    (call,) = done.choices[0].message.tool_calls
    weather(**json.loads(call.function.arguments))
