"""Whatever JSON a client sends, it gets an answer or is told what is wrong; never a 5xx (spec: product §3.10)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serve.scripted import Serving
from tests.serve.test_requests import CHAT_TOOLS, FLAT_TOOLS, HI

NAMES = [
    "model", "messages", "input", "system", "instructions", "role", "content", "text", "type", "name", "id",
    "tool_calls", "tool_call_id", "call_id", "function", "arguments", "output", "tools", "tool_choice", "parameters",
    "input_schema", "response_format", "json_schema", "schema", "format", "thinking", "budget_tokens", "max_tokens",
    "max_output_tokens", "max_completion_tokens", "stop", "stop_sequences", "temperature", "top_k", "top_p", "seed",
    "min_p", "logit_bias", "stream", "stream_options", "include_usage", "include", "reasoning", "effort",
    "reasoning_effort", "output_config", "previous_response_id", "signature", "encrypted_content", "summary", "mode",
    "allowed_tools", "is_error", "source", "mcp_servers", "store",
]  # fmt: skip
WORDS = [
    "user", "assistant", "system", "developer", "tool", "function", "custom", "auto", "none", "required", "any",
    "allowed_tools", "text", "json_object", "json_schema", "input_text", "output_text", "tool_use", "tool_result",
    "thinking", "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "item_reference",
    "enabled", "adaptive", "low", "high", "image", "pooled1.x", "pooled1.AA==", "t",
]  # fmt: skip
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
STARTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [
            *HI,
            {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "t", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "y"}]},
        ],
        "tools": CHAT_TOOLS,
        "tool_choice": {"type": "function", "function": {"name": "t"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "stream_options": {"include_usage": True},
    },
    "/v1/messages": {
        "model": "m",
        "max_tokens": 2_000,
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            *HI,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]},
        ],
        "tools": [{"name": "t", "input_schema": {}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
    },
    "/v1/responses": {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "pooled1.AA=="},
            {"type": "function_call", "call_id": "x", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "x", "output": "y"},
        ],
        "tools": [*FLAT_TOOLS, {"type": "custom", "name": "c"}],
        "text": {"format": {"type": "text"}},
        "reasoning": {"effort": "low"},
    },
}
STARTS["/v1/messages/count_tokens"] = STARTS["/v1/messages"]


@st.composite
def bodies(draw: st.DrawFn, path: str) -> Any:
    """A good request with one or two things in it replaced, dropped or added."""
    body = json.loads(json.dumps(STARTS[path]))
    for _ in range(draw(st.integers(0, 2))):
        place: Any = body
        while isinstance(place, (dict, list)) and place and draw(st.booleans()):
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], (dict, list)):
                break
            place = place[key]
        if isinstance(place, dict):
            place[draw(st.sampled_from([*place, *NAMES]))] = draw(VALUES)
        else:
            place.insert(draw(st.integers(0, len(place))), draw(VALUES))
    return {**body, "stream": draw(st.booleans())}


@pytest.fixture(scope="module")
def asking() -> Iterator[Any]:
    with asyncio.Runner() as runner:
        serving = Serving()
        runner.run(serving.server.start())

        async def post(path: str, data: bytes) -> tuple[int, bytes]:
            async with aiohttp.ClientSession() as session, session.post(serving.url + path, data=data) as response:
                return response.status, await response.read()

        yield lambda path, data: runner.run(post(path, data))
        runner.run(serving.server.stop())


FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("path", STARTS)
@FEW
@given(data=st.data())
def test_changed_requests(asking: Any, path: str, data: st.DataObject) -> None:
    body = data.draw(bodies(path))
    _check(*asking(path, json.dumps(body).encode()))


@pytest.mark.parametrize("path", STARTS)
@FEW
@given(body=VALUES | st.binary(max_size=40))
def test_any_body(asking: Any, path: str, body: Any) -> None:
    _check(*asking(path, body if isinstance(body, bytes) else json.dumps(body).encode()))


def _check(status: int, told: bytes) -> None:
    assert status in (200, 400)
    if status == 400:
        assert json.loads(told)["error"]["message"]
    elif not told.startswith((b"data: ", b"event: ")):
        assert isinstance(json.loads(told), dict)
