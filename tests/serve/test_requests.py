"""Parameters, one by one (spec: product §3.4): what is taken, capped, refused."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.clock import VirtualClock
from app.engine.types import Sampling
from app.prompt.ask import Ask, Choice, Effort, Form, JsonFormat, Thinking
from app.prompt.folding import BESIDE
from app.room.api.events import ServedModel
from app.serve.chat_request import chat_request
from app.serve.conversation import FILE_NOTE, IMAGE_NOTE
from app.serve.errors import ApiError
from app.serve.fields import Fields
from app.serve.messages_request import messages_request
from app.serve.parameters import Facts
from app.serve.responses_request import responses_request
from app.serve.store import Store

FACTS = Facts(ServedModel("m", "M", 100_000), "curl")
HI = [{"role": "user", "content": "Hi"}]
TOOL = {"name": "t", "parameters": {"type": "object"}}
CHAT_TOOLS = [{"type": "function", "function": TOOL}]
FLAT_TOOLS = [{"type": "function", **TOOL}]


def chat(**more: Any) -> Ask:
    return chat_request(Fields({"messages": HI, **more}), FACTS).ask


def messages(**more: Any) -> Ask:
    return messages_request(Fields({"model": "m", "max_tokens": 100, "messages": HI, **more}), FACTS).ask


def responses(**more: Any) -> Ask:
    ask = responses_request(Fields({"input": "Hi", **more}), FACTS, Store(VirtualClock())).ask
    assert ask is not None
    return ask


def test_lengths() -> None:
    assert chat().most_tokens == responses().most_tokens == 16_384
    assert chat(max_tokens=5).most_tokens == 5
    assert chat(max_tokens=5, max_completion_tokens=7).most_tokens == 7
    assert responses(max_output_tokens=9).most_tokens == 9
    assert messages(max_tokens=1_000_000).most_tokens == 65_536


def test_sampling() -> None:
    assert chat().sampling is None
    assert chat(temperature=0).sampling == Sampling(0.0, 40)
    assert chat(top_k=500).sampling == Sampling(0.8, 64)
    assert messages(top_k=3, temperature=1).sampling == Sampling(1.0, 3)
    whole = chat(temperature=1.5, top_p=0.9, min_p=0.1, seed=4)
    assert (whole.seed, chat().seed, chat(seed=-1).seed) == (4, None, 2**63 - 1)
    assert whole.sampling == Sampling(1.5, 40, 0.9, 0.1)
    assert responses(top_p=0.5).sampling == Sampling(0.8, 40, 0.5)
    assert chat(logit_bias={"7": -100, "8": 1.5}).bias == {7: -100.0, 8: 1.5}


def test_thinking() -> None:
    assert chat(reasoning_effort="minimal").thinking == Thinking()
    assert chat(reasoning_effort="xhigh").thinking == Thinking(True, Effort.EXTRA)
    assert chat(chat_template_kwargs={"enable_thinking": True}).thinking == Thinking(True)
    both = chat(chat_template_kwargs={"enable_thinking": True}, reasoning_effort="none")
    assert both.thinking == Thinking()
    assert messages(thinking={"type": "adaptive"}, output_config={"effort": "max"}).thinking.effort is Effort.MOST
    assert messages(thinking={"type": "enabled", "budget_tokens": 99}).thinking == Thinking(True, budget=99)
    assert messages(thinking={"type": "disabled"}).thinking == Thinking()


def test_formats() -> None:
    schema = {"type": "object"}
    assert chat(response_format={"type": "text"}).form.format is None
    assert chat(response_format={"type": "json_object"}).form.format == JsonFormat()
    nested = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    flat = {"type": "json_schema", "name": "n", "schema": schema}
    assert chat(response_format=nested).form.format == JsonFormat(schema, "n")
    assert responses(text={"format": flat, "verbosity": "low"}).form.format == JsonFormat(schema, "n")
    assert messages(output_format={"type": "json_schema", "schema": schema}).form.format == JsonFormat(schema)


def test_choices() -> None:
    assert chat(tools=CHAT_TOOLS, tool_choice="none").tools == ()
    assert chat(tool_choice="auto").form == Form()
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "t"}}]}
    form = chat(tools=CHAT_TOOLS, tool_choice={"type": "allowed_tools", "allowed_tools": allowed}).form
    assert (form.choice, form.allowed) == (Choice.REQUIRED, ("t",))
    flat = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "t"}]}
    form = responses(tools=FLAT_TOOLS, tool_choice=flat, max_tool_calls=5).form
    assert (form.choice, form.allowed, form.most_calls) == (Choice.AUTO, ("t",), 5)
    assert responses(tools=FLAT_TOOLS, max_tool_calls=100).form.most_calls == 16


def test_what_is_not_text_is_noted() -> None:
    parts = [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "data:"}}, {"type": "file"}]
    asked = chat_request(Fields({"messages": [{"role": "user", "content": parts}]}), FACTS)
    assert asked.ask.messages[0].text == f"See\n{IMAGE_NOTE}\n{FILE_NOTE}"
    assert len(asked.notes) == 1
    inner = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "image", "source": {}}]}
    ask = messages(messages=[{"role": "user", "content": [inner, {"type": "document", "source": {}}]}])
    assert [message.text for message in ask.messages] == [f"{IMAGE_NOTE}\n\n{BESIDE.format(text=FILE_NOTE)}"]
    heard = responses(input=[{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}])
    assert heard.messages[0].text == IMAGE_NOTE


def test_tools_that_run_elsewhere_are_left_out_with_a_note() -> None:
    kinds = ("web_search", "image_generation", "namespace", "tool_search")
    fields = Fields({"input": "Hi", "tools": [*FLAT_TOOLS, *({"type": kind} for kind in kinds)]})
    asked = responses_request(fields, FACTS, Store(VirtualClock()))
    assert asked.ask
    assert [tool.name for tool in asked.ask.tools] == ["t"]
    assert len(asked.notes) == 4
    web = {"type": "web_search_20250305", "name": "web_search"}
    assert messages(tools=[web]).tools == ()
    ran = [{"type": "web_search_call", "id": "x", "status": "completed"}, {"type": "mcp_list_tools"}, *HI]
    assert len(responses(input=ran).messages) == 1


def test_a_foreign_signature_falls_back_to_what_can_be_read() -> None:
    block = {"type": "thinking", "thinking": "Seen", "signature": "EqQBCgIYAhIM"}
    ask = messages(messages=[*HI, {"role": "assistant", "content": [block, {"type": "redacted_thinking"}]}, *HI])
    assert getattr(ask.messages[1], "reasoning", "") == "Seen"
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Seen"}], "encrypted_content": "gAAA"}
    heard = responses(input=[*HI, item, {"role": "assistant", "content": "So"}, *HI])
    assert getattr(heard.messages[1], "reasoning", "") == "Seen"


CHAT_REFUSED: list[dict[str, Any]] = [
    {"n": 2}, {"logprobs": True}, {"top_logprobs": 3}, {"audio": {"voice": "x"}}, {"modalities": ["text", "audio"]},
    {"prediction": {"type": "content"}}, {"web_search_options": {"a": 1}}, {"functions": [TOOL]},
    {"function_call": "auto"}, {"presence_penalty": 0.5}, {"frequency_penalty": -1}, {"temperature": 2.1},
    {"temperature": "hot"}, {"temperature": True}, {"top_k": 0}, {"top_p": 1.1}, {"min_p": -1}, {"seed": 1.5},
    {"max_tokens": 0}, {"max_tokens": "5"}, {"stop": ["a"] * 5}, {"stop": "x" * 65}, {"stop": [""]}, {"stop": [1]},
    {"logit_bias": {"x": 1}}, {"logit_bias": {"1": 101}}, {"logit_bias": {str(i): 1 for i in range(1_025)}},
    {"reasoning_effort": "some"}, {"stream": "yes"}, {"tools": [{"type": "custom", "custom": {"name": "x"}}]},
    {"tools": CHAT_TOOLS * 2}, {"tools": [{"type": "function", "function": {"name": "a b"}}]},
    {"tools": [{"type": "function", "function": {"name": "x" * 129}}]}, {"tools": CHAT_TOOLS * 1_025},
    {"tool_choice": "required"}, {"tools": CHAT_TOOLS, "tool_choice": {"type": "function", "function": {"name": "u"}}},
    {"tools": CHAT_TOOLS, "tool_choice": "any"}, {"response_format": {"type": "xml"}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, {"messages": []}, {"messages": "Hi"},
    {"messages": [*HI, {"role": "assistant", "content": "So"}]}, {"messages": [{"role": "function", "content": "x"}]},
    {"messages": [{"role": "user"}]}, {"messages": [{"role": "tool", "content": "x"}]}, {"messages": [1]},
    {"messages": HI * 1_001}, {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}, *HI]}, {"messages": [{"content": "x"}]},
    {"messages": [{"role": "user", "content": "x" * 1_500_001}]},
]  # fmt: skip
MESSAGES_REFUSED: list[dict[str, Any]] = [
    {"model": None}, {"max_tokens": None}, {"max_tokens": 0}, {"temperature": 1.5}, {"mcp_servers": [{"url": "x"}]},
    {"thinking": {"type": "enabled"}}, {"thinking": {"type": "enabled", "budget_tokens": 100}},
    {"thinking": {"type": "on"}}, {"stop_sequences": ["a"] * 5}, {"system": 5},
    {"messages": [{"role": "user", "content": [{"type": "search_result"}]}]}, {"tool_choice": {"type": "any"}},
    {"tool_choice": "auto"}, {"tools": [{"name": ""}]}, {"tool_choice": {"type": "tool", "name": "x"}},
    {"output_format": {"type": "json_object"}}, {"messages": [{"role": "tool", "content": "x"}]},
    {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
]  # fmt: skip
RESPONSES_REFUSED: list[dict[str, Any]] = [
    {"background": True}, {"conversation": "c"}, {"prompt": {"id": "p"}}, {"top_logprobs": 1}, {"max_tool_calls": 0},
    {"include": ["message.output_text.logprobs"]}, {"max_tool_calls": 129}, {"previous_response_id": "resp_x"},
    {"input": [{"type": "item_reference", "id": "x"}]}, {"input": [{"type": "magic"}]}, {"input": 5},
    {"tool_choice": {"type": "web_search"}}, {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
    {"input": [{"type": "function_call", "call_id": "x"}]}, {"reasoning": {"effort": "some"}}, {"store": "no"},
    {"tools": [{"type": "custom"}]}, {"input": [*HI, {"role": "assistant", "content": ""}]},
]  # fmt: skip


@pytest.mark.parametrize("more", CHAT_REFUSED, ids=lambda more: "-".join(more))
def test_refused_by_chat(more: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        chat(**more)


@pytest.mark.parametrize("more", MESSAGES_REFUSED, ids=lambda more: "-".join(more))
def test_refused_by_messages(more: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        messages(**more)


@pytest.mark.parametrize("more", RESPONSES_REFUSED, ids=lambda more: "-".join(more))
def test_refused_by_responses(more: dict[str, Any]) -> None:
    with pytest.raises(ApiError):
        responses(**more)


def test_neutral_and_unknown_parameters_pass() -> None:
    chat(
        n=1, logprobs=False, presence_penalty=0, frequency_penalty=0.0, modalities=["text"], logit_bias={}, user="u",
        metadata={"a": "b"}, service_tier="auto", store=False, parallel_tool_calls=True, stop=None, functions=[],
    )  # fmt: skip
    messages(metadata={"user_id": "u"}, mcp_servers=[], context_management={"edits": []}, betas=["x"])
    responses(background=False, truncation="auto", prompt_cache_key="k", client_metadata={}, service_tier="auto")
