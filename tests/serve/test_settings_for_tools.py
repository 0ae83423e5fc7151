"""Settings ready to paste are what each program reads, and sized to the context (spec: product A-099)."""

from __future__ import annotations

import ast
import json
import re
import tomllib

import pytest
import yaml

from app.room.api.events import ServedModel
from app.serve.settings_for_tools import Address, settings_for_tools

ADDRESS = Address(8081, ServedModel("qwen3-8b", "Qwen3 8B", 40_960), "secret")
TEXTS = {each.tool: each.text for each in settings_for_tools(ADDRESS)}


def test_every_tool_gets_the_address_and_the_key() -> None:
    assert len(TEXTS) == 10
    for each in settings_for_tools(ADDRESS):
        assert "http://127.0.0.1:8081" in each.text
        assert "secret" in each.text
        assert each.where


@pytest.mark.parametrize(("context", "answer"), [(2_048, 1_024), (40_960, 10_240), (262_144, 32_000)])
def test_the_longest_answer_is_a_quarter_of_the_context(context: int, answer: int) -> None:
    assert Address(1, ServedModel("m", "M", context)).answer == answer


def test_python_examples_are_python() -> None:
    for tool in ("OpenAI for Python", "Anthropic for Python"):
        ast.parse(TEXTS[tool])


def test_codex() -> None:
    read = tomllib.loads(TEXTS["Codex"])
    assert (read["model_context_window"], read["model_auto_compact_token_limit"]) == (40_960, 32_768)
    provider = read["model_providers"][read["model_provider"]]
    assert (provider["base_url"], provider["wire_api"]) == ("http://127.0.0.1:8081/v1", "responses")


def test_claude_code() -> None:
    read = dict(re.findall(r"export (\w+)=(\S+)", TEXTS["Claude Code"]))
    assert read["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8081"
    assert (read["CLAUDE_CODE_MAX_CONTEXT_TOKENS"], read["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) == ("40960", "10240")


def test_opencode() -> None:
    read = json.loads(TEXTS["opencode"])
    (model,) = read["provider"]["pooled"]["models"].values()
    assert model["limit"] == {"context": 40_960, "output": 10_240}
    assert read["model"] == "pooled/pooled/qwen3-8b"


def test_continue_and_litellm() -> None:
    (model,) = yaml.safe_load(TEXTS["Continue"])["models"]
    assert (model["roles"], model["apiBase"]) == (["chat", "edit"], "http://127.0.0.1:8081/v1")
    (entry,) = yaml.safe_load(TEXTS["LiteLLM"])["model_list"]
    assert entry["litellm_params"]["model"] == "openai/pooled/qwen3-8b"
    assert entry["model_info"]["max_input_tokens"] == 40_960


def test_curl_sends_json() -> None:
    body = re.search(r"-d '(.*)'", TEXTS["curl"])
    assert body
    assert json.loads(body[1])["model"] == "pooled/qwen3-8b"
