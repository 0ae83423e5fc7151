"""The API: time to the first token of two turns, and what a token costs it: ``python -m tests.bench.api [MODEL]``.

``MODEL`` is a GGUF file, else the nano mixture of the shared folder. The first turn has almost 4,000 tokens,
the second adds its answer and a question. What a token costs is measured with a script in the place of the engine, so
that all of the time is the room's and the API's: queue, grammar, parser, messages, HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from app.models.table import Contexts, ModelTable
from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.assembly import Network, assemble
from app.room.ice import IceConfig
from app.room.room import Room
from app.room.settings import RoomSettings
from app.room.state import Phase
from app.serve.config import ServeConfig
from app.serve.server import ApiServer
from tests.bench.api_stream import PATHS, measure
from tests.e2e.rooms import table_with
from tests.e2e.scripted_room import scripted_room
from tests.room.loopback import offer_loopback, room_server, until
from tests.shared import shared_root

NANO = "models/nano-qwen35moe-Q8_0.gguf"
TOKENS = 3_980
CONTEXT = 4_096
STREAMED = 2_000
NOTE = {
    "type": "function",
    "function": {
        "name": "note",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}
CALLING: dict[str, Any] = {"tools": [NOTE], "tool_choice": "required"}


@dataclass(frozen=True)
class Heard:
    """Seconds to the first and to the last token, and what was used."""

    first: float
    last: float
    text: str
    usage: dict[str, Any]


@asynccontextmanager
async def served(room: Room) -> AsyncIterator[str]:
    api = ApiServer(room.answers, ServeConfig(port=0))
    await api.start()
    try:
        yield f"http://127.0.0.1:{api.port}/v1/chat/completions"
    finally:
        await api.stop()


async def chat(url: str, messages: list[dict[str, str]], **more: Any) -> Heard:
    body = {"messages": messages, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0, **more}
    began, first, text, usage = time.perf_counter(), 0.0, "", {}
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        async for raw in response.content:
            line = raw.decode().strip()
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise SystemExit(chunk["error"])
            usage = chunk.get("usage") or usage
            delta = chunk["choices"][0]["delta"] if chunk["choices"] else {}
            said = delta.get("content") or "".join(
                part["function"].get("arguments", "") for part in delta.get("tool_calls", ())
            )
            first = first or (time.perf_counter() - began if said else 0.0)
            text += said
    return Heard(first, time.perf_counter() - began, text, usage)


async def two_turns(model: Path) -> None:
    table = table_with(model, model.stem)
    record = msgspec.structs.replace(
        table.models[0], trained_context=CONTEXT, contexts=Contexts(CONTEXT, CONTEXT), picker=True
    )
    settings = RoomSettings(style=Style(wording=Wording.EXACT, length=Length.SHORT))
    async with room_server() as server:
        network = Network((server.label,), IceConfig(stun=()), 1, cloud=False)
        application = await assemble(network, settings, ModelTable((record,)), fixed_host=True)
        try:
            application.room.handle(it.OpenRoom("otter", 8))
            await until(lambda: application.room.state.invite is not None)
            application.room.handle(it.ChooseModel(record.key))
            application.room.handle(it.Start())
            await until(lambda: application.room.state.phase is Phase.ONLINE, 300)
            async with served(application.room) as url:
                await _turns(url, model.name)
        finally:
            await application.close()


async def _turns(url: str, name: str) -> None:
    words = "once there was a girl by the sea who had a small boat and a big dog. "
    each = await counted(url, 2 * words) - await counted(url, words)
    messages = [{"role": "user", "content": words * (TOKENS // each)}]
    await chat(url, [{"role": "user", "content": "Something else."}], max_tokens=1)
    first = await chat(url, messages, max_tokens=16)
    more = [*messages, {"role": "assistant", "content": first.text}, {"role": "user", "content": "And then?"}]
    second = await chat(url, more, max_tokens=16)
    for turn, heard in enumerate((first, second), 1):
        used = heard.usage["prompt_tokens"], heard.usage["prompt_tokens_details"]["cached_tokens"]
        print(f"{name}: turn {turn}: {used[0]} tokens, {used[1]} of them reused, first token after {heard.first:.2f} s")


async def counted(url: str, text: str) -> int:
    body = {"model": "any", "messages": [{"role": "user", "content": text}]}
    counting = url.replace("/chat/completions", "/messages/count_tokens")
    async with aiohttp.ClientSession() as session, session.post(counting, json=body) as response:
        return (await response.json())["input_tokens"]


async def overhead() -> None:
    """Microseconds a token between the engine and the client."""
    text = " the room of devices" * (STREAMED // 4)
    call = f"<tool_call>\n<function=note>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>"
    model = shared_root() / NANO

    def script(prompt: str) -> str:
        return call if "note" in prompt else text

    async with room_server() as server, scripted_room(model, server, script) as made, served(made.room) as url:
        for what, more in {"words": {}, "a call under its grammar": CALLING}.items():
            await chat(url, [{"role": "user", "content": "Warm up."}], max_tokens=9, **more)
            heard = await chat(url, [{"role": "user", "content": "Go."}], max_tokens=4 * STREAMED, **more)
            count = heard.usage["completion_tokens"]
            cost = heard.last / count * 1e6
            print(f"room and API, {what}: {count} tokens, {cost:.0f} us a token")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path, default=shared_root() / NANO)
    options = parser.parse_args()
    offer_loopback()
    for path in PATHS:
        print(f"API alone, {path}: {asyncio.run(measure(path, STREAMED)):.0f} us a token")
    asyncio.run(overhead())
    with tempfile.TemporaryDirectory() as home:
        os.environ["POOLED_HOME"] = home
        asyncio.run(two_turns(options.model))


if __name__ == "__main__":
    main()
