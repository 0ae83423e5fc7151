"""The Responses API with OpenAI's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest
from pydantic import BaseModel

from app.prompt.ask import AssistantMessage, Call, Choice, Effort, ToolMessage, UserMessage
from app.room.api.events import Ended, Reason
from tests.serve.scripted import HELLO, USAGE, ScriptedAnswers, Serving, answer, call, reasoning, words

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    "strict": True,
}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Change files", "format": {"type": "text"}}
THOUGHT = answer(reasoning("Two", " places"), words("\n"), words("I look."), call(0, "weather", '{"place":', '"Rome"}'))
PATCHED = answer(call(0, "apply_patch", '{"input": "*** Begin', '\\n*** End"}'))
CUT = answer(words("So"), call(0, "weather", '{"pla', ended=False), ended=Ended(Reason.MOST_TOKENS, USAGE))


@pytest.fixture
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Serving]:
    async with Serving(ScriptedAnswers(*getattr(request, "param", ()))) as serving:
        yield serving


def client_of(serving: Serving) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{serving.url}/v1", api_key="any", max_retries=0)


async def test_an_answer_at_once(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.responses.create(model="gpt-5", input="Hi", instructions="Be brief.", max_output_tokens=50)
    assert (done.output_text, done.status, done.model) == ("Hello", "completed", "pooled/qwen3-1.7b")
    assert done.usage
    assert (done.usage.input_tokens, done.usage.input_tokens_details.cached_tokens) == (20, 12)
    assert done.usage.output_tokens_details.reasoning_tokens == 2
    ask = served.answers.asked
    assert (ask.system, ask.messages, ask.most_tokens) == ("Be brief.", (UserMessage("Hi"),), 50)


@pytest.mark.parametrize("served", [[THOUGHT]], indirect=True)
async def test_streamed_and_at_once_are_the_same(served: Serving) -> None:
    options = {"model": "m", "input": "Hi", "tools": [WEATHER], "reasoning": {"effort": "high"}}
    async with client_of(served) as client:
        async with client.responses.stream(**options) as stream:
            kinds = [event.type async for event in stream]
            streamed = await stream.get_final_response()
        whole = await client.responses.create(**options)
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    for done in (streamed, whole):
        thought, message, made = done.output
        assert thought.type == "reasoning"
        assert [part.text for part in thought.content or ()] == ["Two places"]
        assert message.type == "message"
        assert done.output_text == "\nI look."
        assert made.type == "function_call"
        assert (made.name, made.arguments, made.status) == ("weather", '{"place":"Rome"}', "completed")
    assert served.answers.asked.thinking.effort is Effort.HIGH


@pytest.mark.parametrize("served", [[THOUGHT, HELLO]], indirect=True)
async def test_a_conversation_goes_on_from_a_kept_response(served: Serving) -> None:
    async with client_of(served) as client:
        first = await client.responses.create(model="m", input="Hi", tools=[WEATHER], instructions="Be brief.")
        made = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": made.call_id, "output": "warm"}
        second = await client.responses.create(
            model="m", input=[result], tools=[WEATHER], previous_response_id=first.id
        )
        kept = await client.responses.retrieve(second.id)
        items = await client.responses.input_items.list(second.id, order="asc", limit=2)
        await client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(first.id)
        with pytest.raises(openai.BadRequestError) as gone:
            await client.responses.create(model="m", input="x", previous_response_id=first.id)
    ask = served.answers.asks[1]
    said = AssistantMessage("\nI look.", (Call("weather", {"place": "Rome"}),), "Two places")
    assert (ask.system, ask.messages) == ("", (UserMessage("Hi"), said, ToolMessage("warm")))
    assert kept.output_text == "Hello"
    assert [item.type for item in items.data] == ["message", "reasoning"]
    assert items.has_more
    assert gone.value.code == "previous_response_not_found"


@pytest.mark.parametrize("served", [[THOUGHT, HELLO]], indirect=True)
async def test_reasoning_comes_back_sealed_with_nothing_stored(served: Serving) -> None:
    options = {"model": "m", "store": False, "include": ["reasoning.encrypted_content"], "tools": [WEATHER]}
    async with client_of(served) as client:
        first = await client.responses.create(input="Hi", **options)
        sealed = [item.model_dump(exclude={"content", "status"}, exclude_none=True) for item in first.output[:1]]
        assert sealed[0]["encrypted_content"].startswith("pooled1.")
        asked = [{"role": "user", "content": "Hi"}, *sealed, {"role": "assistant", "content": "Yes"}]
        await client.responses.create(input=[*asked, {"role": "user", "content": "And?"}], **options)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(first.id)
    assert served.answers.asked.messages[1] == AssistantMessage("Yes", (), "Two places")


@pytest.mark.parametrize("served", [[PATCHED]], indirect=True)
async def test_a_custom_tool_takes_one_text(served: Serving) -> None:
    async with client_of(served) as client:
        async with client.responses.stream(model="m", input="Hi", tools=[PATCH, {"type": "web_search"}]) as stream:
            events = [event async for event in stream]
            done = await stream.get_final_response()
        (made,) = done.output
        assert made.type == "custom_tool_call"
        assert (made.name, made.input) == ("apply_patch", "*** Begin\n*** End")
        back = [
            {"role": "user", "content": "Hi"},
            made.model_dump(exclude_none=True),
            {"type": "custom_tool_call_output", "call_id": made.call_id, "output": "done"},
        ]
        await client.responses.create(model="m", input=back, tools=[PATCH])
    deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert deltas == ["*** Begin\n*** End"]
    assert [tool.name for tool in served.answers.asked.tools] == ["apply_patch"]
    called = AssistantMessage("", (Call("apply_patch", {"input": "*** Begin\n*** End"}),))
    assert served.answers.asked.messages[1:] == (called, ToolMessage("done"))


@pytest.mark.parametrize("served", [[CUT]], indirect=True)
async def test_a_cut_call_stays_incomplete(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.responses.create(model="m", input="Hi", tools=[WEATHER])
    assert done.status == "incomplete"
    assert done.incomplete_details
    assert done.incomplete_details.reason == "max_output_tokens"
    assert [item.status for item in done.output] == ["completed", "incomplete"]


class Town(BaseModel):
    name: str


@pytest.mark.parametrize("served", [[answer(words('{"name":', ' "Rome"}'))]], indirect=True)
async def test_a_schema_is_parsed(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.responses.parse(model="m", input="Hi", text_format=Town)
    assert done.output_parsed == Town(name="Rome")


async def test_allowed_tools_that_run_elsewhere(served: Serving) -> None:
    elsewhere = [{"type": "web_search"}]
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": elsewhere}
    async with client_of(served) as client:
        await client.responses.create(model="m", input="Hi", tools=[WEATHER], tool_choice=allowed)
        assert served.answers.asked.tools == ()
        for choice in ({**allowed, "mode": "required"}, {"type": "web_search"}):
            with pytest.raises(openai.BadRequestError):
                await client.responses.create(model="m", input="Hi", tools=[WEATHER], tool_choice=choice)
        named = {"type": "function", "name": "weather"}
        await client.responses.create(model="m", input="Hi", tools=[WEATHER], tool_choice=named, max_tool_calls=3)
    form = served.answers.asked.form
    assert (form.choice, form.named, form.most_calls) == (Choice.REQUIRED, "weather", 1)


async def test_a_probe_without_input_is_answered_at_once(served: Serving) -> None:
    async with client_of(served) as client:
        done = await client.responses.create(model="m", input=[])
    assert (done.status, done.output) == ("completed", [])
    assert served.answers.asks == []
