"""Settings for the programs people use, ready to paste and sized to the context that runs now (spec: product A-099)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from app.room.api.events import ServedModel
from app.serve.config import root_url
from app.serve.writing import model_id

ANY_KEY = "pooled"
_SMALLEST_ANSWER = 1_024
_LARGEST_ANSWER = 32_000
_IDLE_MS = 1_800_000


@dataclass(frozen=True)
class Address:
    """Where the API is, what runs there, and the key to send; any key will do where no token was set."""

    port: int
    model: ServedModel
    key: str = ANY_KEY

    @property
    def root(self) -> str:
        """The base URL of Anthropic's API; OpenAI's has ``/v1`` behind it."""
        return root_url(self.port)

    @property
    def openai(self) -> str:
        return f"{self.root}/v1"

    @property
    def id(self) -> str:
        return model_id(self.model.key)

    @property
    def answer(self) -> int:
        """The longest answer that leaves a conversation its room: a quarter of the context, in tokens."""
        return max(_SMALLEST_ANSWER, min(_LARGEST_ANSWER, self.model.context // 4))


@dataclass(frozen=True)
class ToolSettings:
    """``where`` says where ``text`` goes."""

    tool: str
    where: str
    text: str


def settings_for_tools(address: Address) -> tuple[ToolSettings, ...]:
    """Every tool's settings, in the order they are shown."""
    return tuple(ToolSettings(tool, where, text(address)) for tool, where, text in _TOOLS)


def curl(address: Address) -> str:
    body = {"model": address.id, "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    return (
        f"curl -N {address.openai}/chat/completions \\\n"
        f'  -H "Authorization: Bearer {address.key}" -H "Content-Type: application/json" \\\n'
        f"  -d '{json.dumps(body)}'\n"
    )


def openai_python(address: Address) -> str:
    return f"""from openai import OpenAI

client = OpenAI(base_url="{address.openai}", api_key="{address.key}")
stream = client.chat.completions.create(
    model="{address.id}", messages=[{{"role": "user", "content": "Hello"}}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
"""


def openai_javascript(address: Address) -> str:
    return f"""import OpenAI from "openai";

const client = new OpenAI({{ baseURL: "{address.openai}", apiKey: "{address.key}" }});
const stream = await client.chat.completions.create({{
  model: "{address.id}", messages: [{{ role: "user", content: "Hello" }}], stream: true,
}});
for await (const chunk of stream) process.stdout.write(chunk.choices[0].delta.content ?? "");
"""


def anthropic_python(address: Address) -> str:
    return f"""from anthropic import Anthropic

client = Anthropic(base_url="{address.root}", api_key="{address.key}")
with client.messages.stream(
    model="{address.id}", max_tokens={address.answer}, messages=[{{"role": "user", "content": "Hello"}}]
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)
"""


def codex(address: Address) -> str:
    context = address.model.context
    return f"""model = "{address.id}"
model_provider = "pooled"
model_context_window = {context}
model_auto_compact_token_limit = {context * 4 // 5}

[model_providers.pooled]
name = "Pooled"
base_url = "{address.openai}"
wire_api = "responses"
experimental_bearer_token = "{address.key}"
stream_idle_timeout_ms = {_IDLE_MS}
"""


def claude_code(address: Address) -> str:
    variables = {
        "ANTHROPIC_BASE_URL": address.root,
        "ANTHROPIC_AUTH_TOKEN": address.key,
        "ANTHROPIC_MODEL": address.id,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": address.id,
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": address.model.context,
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": address.answer,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": 1,
        "API_TIMEOUT_MS": _IDLE_MS,
    }
    return "".join(f"export {name}={value}\n" for name, value in variables.items()) + "claude\n"


def opencode(address: Address) -> str:
    limit = {"context": address.model.context, "output": address.answer}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Pooled",
        "options": {"baseURL": address.openai, "apiKey": address.key},
        "models": {address.id: {"name": address.model.label, "limit": limit}},
    }
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "provider": {"pooled": provider},
        "model": f"pooled/{address.id}",
        "agent": {"title": {"disable": True}},
    }
    return json.dumps(settings, indent=2) + "\n"


def continue_(address: Address) -> str:
    return f"""name: Pooled
version: 0.0.1
schema: v1
models:
  - name: {json.dumps(address.model.label)}
    provider: openai
    model: {address.id}
    apiBase: {address.openai}
    apiKey: {address.key}
    roles: [chat, edit]
    defaultCompletionOptions:
      contextLength: {address.model.context}
      maxTokens: {address.answer}
"""


def open_webui(address: Address) -> str:
    return f"""OPENAI_API_BASE_URL={address.openai}
OPENAI_API_KEY={address.key}
# In Docker: start the container with --network=host, or it cannot reach this computer.
"""


def litellm(address: Address) -> str:
    return f"""model_list:
  - model_name: pooled
    litellm_params:
      model: openai/{address.id}
      api_base: {address.openai}
      api_key: {address.key}
    model_info:
      max_input_tokens: {address.model.context}
      max_output_tokens: {address.answer}
"""


_TOOLS: tuple[tuple[str, str, Callable[[Address], str]], ...] = (
    ("curl", "a terminal", curl),
    ("OpenAI for Python", "a Python file", openai_python),
    ("OpenAI for JavaScript", "a JavaScript module", openai_javascript),
    ("Anthropic for Python", "a Python file", anthropic_python),
    ("Codex", "~/.codex/config.toml", codex),
    ("Claude Code", "a terminal", claude_code),
    ("opencode", "opencode.json, with OPENCODE_DISABLE_CLAUDE_CODE=1 set", opencode),
    ("Continue", "~/.continue/config.yaml", continue_),
    ("Open WebUI", "its environment", open_webui),
    ("LiteLLM", "config.yaml", litellm),
)
