"""Which program asks, from its User-Agent (spec: product A-005, R-211)."""

from __future__ import annotations

LONGEST = 40
_KNOWN = (
    ("codex", "Codex"),
    ("claude-cli", "Claude Code"),
    ("claude-code", "Claude Code"),
    ("opencode", "opencode"),
    ("open-webui", "Open WebUI"),
    ("open webui", "Open WebUI"),
    ("continue", "Continue"),
    ("litellm", "LiteLLM"),
    ("openai/python", "OpenAI for Python"),
    ("asyncopenai/python", "OpenAI for Python"),
    ("openai/js", "OpenAI for JavaScript"),
    ("anthropic/python", "Anthropic for Python"),
    ("asyncanthropic/python", "Anthropic for Python"),
    ("anthropic/js", "Anthropic for JavaScript"),
    ("curl/", "curl"),
)


def client_name(user_agent: str) -> str:
    """A name of at most 40 letters; never from what a request says of its user."""
    lower = user_agent.lower()
    known = next((name for mark, name in _KNOWN if mark in lower), "")
    words = user_agent.replace("/", " ").split()
    first = "".join(letter for letter in (words[0] if words else "") if letter.isprintable())
    return known or first[:LONGEST] or "a program"
