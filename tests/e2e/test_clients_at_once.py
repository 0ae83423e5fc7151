"""Four programs at once at the API of one device: each is told what it is told alone, and a person is answered too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from app.room import intents as it
from tests.e2e.api_room import ServedRoom, served_room
from tests.e2e.rooms import until
from tests.shared import shared_file

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTIONS = ("How warm is Rome?", "Who wrote the Iliad?", "Name a river in Asia.", "What is a prime number?")
CREATIVE = {"temperature": 0.8, "seed": 7}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def room() -> AsyncIterator[ServedRoom]:
    async with served_room(shared_file("models/nano-qwen35moe-Q8_0.gguf"), alone=True) as made:
        yield made


async def chat(session: aiohttp.ClientSession, room: ServedRoom, *said: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(said)]
    body = {"model": "pooled", "messages": messages, "max_tokens": 16, **CREATIVE}
    async with session.post(f"{room.url}/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


def text_of(done: dict[str, Any]) -> str:
    return done["choices"][0]["message"]["content"]


async def test_four_clients_at_once_are_told_what_each_is_told_alone(room: ServedRoom) -> None:
    async with aiohttp.ClientSession() as session:
        alone = [await chat(session, room, question) for question in QUESTIONS]
        most: list[int] = []
        steps = room.application.compute.step

        async def counted(asked: Any) -> Any:
            most.append(len(asked))
            return await steps(asked)

        room.application.compute.step = counted  # type: ignore[method-assign]
        room.application.room.handle(it.Ask("Who are you?"))
        together = await asyncio.gather(*(chat(session, room, question) for question in QUESTIONS))
        assert [text_of(done) for done in together] == [text_of(done) for done in alone]
        state = await until(room.application, lambda s: any(not x.client and not x.live for x in s.transcript))
        assert [x.answer for x in state.transcript if not x.client and x.answer]
        assert max(most) >= 3
