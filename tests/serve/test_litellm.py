"""LiteLLM as its users set it up."""

from __future__ import annotations

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm
import pytest

from app.serve.settings_for_tools import Address
from app.serve.settings_for_tools import litellm as settings
from tests.serve.scripted import MODEL, ScriptedAnswers, Serving, answer, call

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]


@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_litellm_asks_and_streams() -> None:
    async with Serving(ScriptedAnswers(answer(call(0, "weather", "{", "}")))) as serving:
        address = Address(serving.server.port, MODEL)
        assert f"openai/{address.id}" in settings(address)
        options = {
            "model": f"openai/{address.id}",
            "api_base": address.openai,
            "api_key": address.key,
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": TOOLS,
        }
        whole = await litellm.acompletion(**options)
        stream = await litellm.acompletion(**options, stream=True)
        built = litellm.stream_chunk_builder([chunk async for chunk in stream])
    for done in (whole, built):
        (made,) = done.choices[0].message.tool_calls
        assert (made.function.name, made.function.arguments) == ("weather", "{}")
        assert done.choices[0].finish_reason == "tool_calls"
