"""Answers whose streams are kept byte for byte: a request, and what the room says to it.

``python -m tests.serve.golden_cases`` writes the files anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Reasoning, Words
from app.room.api.events import Ended, Reason, Usage
from tests.serve.scripted import ScriptedAnswers, Serving, Step, answer, call, counting, reasoning, spoken, words

FOLDER = Path(__file__).with_name("golden")
USAGE = Usage(prompt=20, reused=12, output=9, reasoning=2)
HI = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TOOL = {"name": "weather", "description": "", "parameters": SCHEMA}
CALLS = answer(
    reasoning("Two", " places"),
    words("\n\n", "Läuft: ", "\u2713"),
    call(0, "weather", '{"place"', ': "Rome"}'),
    words("\n"),
    call(1, "weather", '{"place": "Oslo"}'),
    ended=Ended(Reason.STOP, USAGE),
)
PLAIN = answer(words("Hel", "lo"), ended=Ended(Reason.STOP, USAGE))
STOPPED = answer(words("Hel", "lo"), ended=Ended(Reason.STOP_SEQUENCE, USAGE, stop="END"))
CONTEXT = answer(words("Hel", "lo"), ended=Ended(Reason.CONTEXT, USAGE))
CUT = answer(words("So"), call(0, "weather", '{"pla', ended=False), ended=Ended(Reason.MOST_TOKENS, USAGE))
ABORTED = answer(words("Hel"), ended=Ended(Reason.ABORTED, USAGE, why="The answer was stopped in the room."))
PATCHED = answer(call(0, "patch", '{"input": "a', '\\nb"}'), ended=Ended(Reason.STOP, USAGE))
BURST = answer(
    [spoken(Reasoning("Hm"), Words("So"), CallBegun(0, "weather"), CallArguments(0, "{}"), CallEnded(0)), spoken()],
    ended=Ended(Reason.STOP, USAGE),
)
SCRIPTS = {
    "burst": BURST,
    "plain": PLAIN,
    "calls": CALLS,
    "stopped": STOPPED,
    "context": CONTEXT,
    "cut": CUT,
    "aborted": ABORTED,
}

CHAT = {
    "model": "m", "messages": HI, "tools": [{"type": "function", "function": TOOL}],
    "reasoning_effort": "low", "stream_options": {"include_usage": True},
}  # fmt: skip
MESSAGES = {
    "model": "m", "max_tokens": 2_000, "messages": HI,
    "tools": [{"name": "weather", "input_schema": SCHEMA}], "thinking": {"type": "adaptive"},
}  # fmt: skip
RESPONSES = {"model": "m", "input": "Hi", "tools": [{"type": "function", **TOOL}], "reasoning": {"effort": "low"}}


@dataclass(frozen=True)
class Case:
    name: str
    path: str
    body: dict[str, Any]
    script: Sequence[Step]

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.sse"


def cases() -> list[Case]:
    every = [Case(f"chat-{name}", "/v1/chat/completions", CHAT, script) for name, script in SCRIPTS.items()]
    every += [Case(f"messages-{name}", "/v1/messages", MESSAGES, script) for name, script in SCRIPTS.items()]
    every += [Case(f"responses-{name}", "/v1/responses", RESPONSES, script) for name, script in SCRIPTS.items()]
    bare = {"model": "m", "messages": HI}
    custom = {"model": "m", "input": "Hi", "tools": [{"type": "custom", "name": "patch"}], "store": False}
    return [
        *every,
        Case("chat-without-usage", "/v1/chat/completions", bare, PLAIN),
        Case("responses-custom", "/v1/responses", custom, PATCHED),
    ]


async def stream_of(case: Case) -> bytes:
    body = {**case.body, "stream": True}
    async with (
        Serving(ScriptedAnswers(case.script), naming=counting) as serving,
        aiohttp.ClientSession() as session,
        session.post(serving.url + case.path, json=body) as response,
    ):
        assert response.status == 200, await response.text()
        return await response.read()


async def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for case in cases():
        case.file.write_bytes(await stream_of(case))


if __name__ == "__main__":
    asyncio.run(_write())
