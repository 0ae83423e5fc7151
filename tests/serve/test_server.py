"""Starting, stopping, the small pages, and what the window hears."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import aiohttp
import pytest

from app.core.errors import PooledError
from app.serve import service
from app.serve.clients import client_name
from app.serve.config import ServeConfig
from app.serve.server import ApiServer
from app.serve.status import ClientCount, Phase, ServeStatus
from tests.serve.scripted import HELLO, Pause, ScriptedAnswers, Serving

HI = {"messages": [{"role": "user", "content": "Hi"}]}


async def get(serving: Serving, path: str, **headers: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(serving.url + path, headers=headers) as response:
        assert response.status == 200
        return await response.json(content_type=None) if path != "/" else await response.text()


async def test_a_busy_port_is_named_with_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        server = ApiServer(ScriptedAnswers(), ServeConfig(port))
        with pytest.raises(PooledError, match=str(port)) as caught:
            await server.start()
        assert "another port" in caught.value.remedy
        assert (server.port, server.status.phase) == (0, Phase.OFF)


async def test_it_listens_on_this_computer_only_and_starts_again() -> None:
    async with Serving() as serving:
        await serving.server.start()
        first = serving.server.port
        assert first
        await serving.server.stop()
        assert serving.server.port == 0
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", first)
        await serving.server.start()
        assert (await get(serving, "/health"))["ok"] is True


async def test_bodies_are_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: set[int] = set()

    def noted(work: Any) -> Any:
        def run(*given: Any) -> Any:
            readers.add(threading.get_ident())
            return work(*given)

        return run

    for name in ("parse", "chat_request"):
        monkeypatch.setattr(service, name, noted(getattr(service, name)))
    async with Serving() as serving, aiohttp.ClientSession() as session:
        assert (await session.post(f"{serving.url}/v1/chat/completions", json=HI)).status == 200
    assert readers
    assert threading.get_ident() not in readers


async def test_small_pages() -> None:
    async with Serving() as serving:
        health = await get(serving, "/health")
        assert health == {
            "ok": True,
            "room": "4TKG9P",
            "connected": True,
            "ready": True,
            "model": "pooled/qwen3-1.7b",
            "ctx": 4_096,
            "queue": 0,
            "served": 0,
        }
        assert f"{serving.url}/v1" in await get(serving, "/")
        listed = await get(serving, "/v1/models")
        assert (listed["object"], [model["max_model_len"] for model in listed["data"]]) == ("list", [4_096])
        for headers in ({"anthropic-version": "2023-06-01"}, {"x-api-key": "k"}):
            assert (await get(serving, "/v1/models", **headers))["has_more"] is False
        assert "object" in await get(serving, "/v1/models", **{"x-api-key": "k", "Authorization": "Bearer k"})
        serving.answers.model = None
        assert (await get(serving, "/v1/models"))["data"] == []
        assert (await get(serving, "/health"))["ready"] is False


async def test_the_window_hears_who_asks() -> None:
    heard: list[ServeStatus] = []
    pause = Pause()
    answers = ScriptedAnswers([HELLO[0], pause, *HELLO[1:]])
    async with Serving(answers, on_change=heard.append) as serving, aiohttp.ClientSession() as session:
        assert heard[-1].words == "Waiting for a client"
        headers = {"User-Agent": "opencode/1.2 ai-sdk/3"}
        asking = asyncio.create_task(session.post(f"{serving.url}/v1/chat/completions", json=HI, headers=headers))
        await pause.reached.wait()
        assert heard[-1].words == "Answering opencode"
        pause.go.set()
        async with await asking as response:
            assert response.status == 200
        assert heard[-1].words == "opencode is connected"
        assert heard[-1].clients == (ClientCount("opencode", 1),)
        assert heard[-1].served == 1
        assert serving.server.status == heard[-1]
    assert heard[-1].phase is Phase.OFF


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("codex_cli_rs/0.50.0 (Linux)", "Codex"),
        ("claude-cli/2.1 (external, cli)", "Claude Code"),
        ("AsyncOpenAI/Python 2.1.0", "OpenAI for Python"),
        ("Anthropic/JS 0.60", "Anthropic for JavaScript"),
        ("curl/8.5.0", "curl"),
        ("my-tool/1.0 extra", "my-tool"),
        ("x" * 100, "x" * 40),
        ("", "a program"),
    ],
)
def test_names_of_programs(agent: str, name: str) -> None:
    assert client_name(agent) == name
