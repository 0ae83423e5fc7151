"""Requests as coding agents send them, whole: Codex, Claude Code, opencode (spec: product §3.11)."""

from __future__ import annotations

import json
import logging
from typing import Any

import aiohttp
import pytest

from app.prompt.ask import AssistantMessage, Call, Effort, ToolMessage, UserMessage
from app.prompt.folding import BESIDE, LATE_SYSTEM
from app.serve.signature import signed
from tests.serve.scripted import ScriptedAnswers, Serving, answer, call, reasoning, words

SHELL = {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}}
CODEX = {
    "model": "pooled/qwen3-1.7b",
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandboxed."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List files"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": signed("I list.")},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell", "arguments": '{"command":["ls"]}'},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    ],
    "tools": [
        {"type": "function", "name": "shell", "description": "Runs", "strict": False, "parameters": SHELL},
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edits",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: PATCH"},
        },
        {"type": "web_search", "external_web_access": False},
        {"type": "image_generation", "output_format": "png"},
        {"type": "namespace", "name": "mcp__x", "tools": []},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "text": {"verbosity": "low"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"x": "y"},
}
CLAUDE = {
    "model": "claude-sonnet",
    "max_tokens": 32_000,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=1a2b3;"},
        {"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral"}},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "List files", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": signed("I list.")},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.py"}]},
                {"type": "text", "text": "<system-reminder>Be brief</system-reminder>"},
            ],
        },
        {"role": "system", "content": "The mode changed."},
    ],
    "tools": [
        {
            "name": "Bash",
            "description": "Runs",
            "input_schema": {"$schema": "x", **SHELL},
            "eager_input_streaming": True,
        },
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
    ],
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "medium"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": "u"},
    "temperature": 1,
    "stream": True,
}
OPENCODE = {
    "model": "pooled/qwen3-1.7b",
    "max_tokens": 1_024,
    "temperature": 0.55,
    "top_p": 1,
    "messages": [
        {"role": "system", "content": "You are a coding agent."},
        {"role": "user", "content": "List files"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "I list.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    ],
    "tools": [{"type": "function", "function": {"name": "bash", "description": "Runs", "parameters": SHELL}}],
    "tool_choice": "auto",
    "stream": True,
    "stream_options": {"include_usage": True},
}


async def ask(serving: Serving, path: str, body: dict[str, Any], agent: str) -> str:
    headers = {"User-Agent": agent, "Authorization": "Bearer pooled"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(serving.url + path, json=body) as response,
    ):
        told = await response.text()
        assert response.status == 200, told
        return told


async def test_codex(caplog: pytest.LogCaptureFixture) -> None:
    script = answer(reasoning("Now"), words("Done"), call(0, "apply_patch", '{"input":', '"*** Begin"}'))
    async with Serving(ScriptedAnswers(script)) as serving:
        told = await ask(serving, "/v1/responses", CODEX, "codex_cli_rs/0.60.0")
        await ask(serving, "/v1/responses", CODEX, "codex_cli_rs/0.60.0")
    asked = serving.answers.asked
    assert asked.system == "You are a coding agent.\n\nSandboxed."
    said = AssistantMessage("", (Call("shell", {"command": ["ls"]}),), "I list.")
    assert asked.messages == (UserMessage("List files"), said, ToolMessage("a.py"))
    assert [tool.name for tool in asked.tools] == ["shell", "apply_patch"]
    assert asked.tools[1].description == "Edits\n\nstart: PATCH"
    assert (asked.thinking.effort, asked.form.parallel, asked.client) == (Effort.MEDIUM, False, "Codex")
    last = json.loads(told.strip().rsplit("data: ", 1)[1])
    assert last["response"]["output"][0]["encrypted_content"] == signed("Now")
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == len(set(warned)) == 4
    assert all(text.startswith("Codex: ") for text in warned)


async def test_claude_code() -> None:
    async with Serving(ScriptedAnswers(answer(call(0, "Bash", "{}")))) as serving:
        told = await ask(serving, "/v1/messages?beta=true", CLAUDE, "claude-cli/2.1.5 (external, cli)")
    asked = serving.answers.asked
    assert asked.system == "You are a coding agent."
    said = AssistantMessage("", (Call("Bash", {"command": "ls"}),), "I list.")
    asides = ("<system-reminder>Be brief</system-reminder>", LATE_SYSTEM.format(text="The mode changed."))
    beside = [BESIDE.format(text=text) for text in asides]
    assert asked.messages == (UserMessage("List files"), said, ToolMessage("\n\n".join(["a.py", *beside])))
    assert [tool.name for tool in asked.tools] == ["Bash"]
    assert asked.client == "Claude Code"
    assert '"stop_reason":"tool_use"' in told


async def test_opencode() -> None:
    async with Serving(ScriptedAnswers(answer(words("So")))) as serving:
        told = await ask(serving, "/v1/chat/completions", OPENCODE, "opencode/1.0 ai-sdk/provider-utils/3.0")
    asked = serving.answers.asked
    said = AssistantMessage("", (Call("bash", {"command": "ls"}),), "I list.")
    assert asked.messages == (UserMessage("List files"), said, ToolMessage("a.py"))
    assert asked.client == "opencode"
    assert told.endswith("data: [DONE]\n\n")
