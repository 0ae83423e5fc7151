"""Who may ask (spec: product A-010 to A-012)."""

from __future__ import annotations

import logging

import aiohttp
import pytest

from app.serve.config import ServeConfig
from tests.serve.scripted import ScriptedAnswers, Serving

TOKEN = "correct horse"
LOCKED = ServeConfig(port=0, token=TOKEN)
HI = {"messages": [{"role": "user", "content": "Hi"}]}


async def status(serving: Serving, path: str = "/v1/models", method: str = "GET", **headers: str) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, serving.url + path, headers=headers) as response,
    ):
        return response.status


async def test_only_this_computers_names_are_served() -> None:
    async with Serving() as serving:
        port = serving.server.port
        assert await status(serving, Host=f"localhost:{port}") == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"0.0.0.0:{port}"):
            assert await status(serving, Host=host) == 403, host
            assert await status(serving, "/health", Host=host) == 403


async def test_web_pages_are_turned_away() -> None:
    async with Serving() as serving:
        for origin in ("https://evil.example", "null", serving.url):
            assert await status(serving, Origin=origin) == 403
            assert await status(serving, method="OPTIONS", Origin=origin) == 403


async def test_an_origin_that_was_asked_for_gets_in() -> None:
    config = ServeConfig(port=0, token=TOKEN, origins=("http://localhost:3000",))
    async with Serving(config=config) as serving, aiohttp.ClientSession() as session:
        headers = {"Origin": "http://localhost:3000", "Access-Control-Request-Headers": "authorization"}
        async with session.options(f"{serving.url}/v1/models", headers=headers) as allowed:
            assert allowed.status == 204
            assert allowed.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
            assert allowed.headers["Access-Control-Allow-Headers"] == "authorization"
        async with session.get(f"{serving.url}/v1/models", headers=headers) as refused:
            assert refused.status == 401
        assert await status(serving, Origin="http://localhost:3001") == 403


async def test_no_page_is_told_it_may_read() -> None:
    async with (
        Serving() as serving,
        aiohttp.ClientSession() as session,
        session.get(f"{serving.url}/v1/models") as response,
    ):
        assert not [name for name in response.headers if name.lower().startswith("access-control")]


async def test_a_token_opens_every_path(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Serving(config=LOCKED) as serving:
        for headers in (
            {"Authorization": f"Bearer {TOKEN}"},
            {"x-api-key": TOKEN},
            {"Authorization": f"bearer {TOKEN}"},
        ):
            assert await status(serving, **headers) == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"x-api-key": ""}, {"Authorization": f"Basic {TOKEN}"}):
            for path in ("/v1/models", "/", "/v1/nothing"):
                assert await status(serving, path, **headers) == 401
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(LOCKED)


async def test_without_the_token_health_only_says_ok() -> None:
    async with Serving(config=LOCKED) as serving, aiohttp.ClientSession() as session:
        async with session.get(f"{serving.url}/health") as response:
            assert await response.json() == {"ok": True}
        async with session.get(f"{serving.url}/health", headers={"x-api-key": TOKEN}) as response:
            assert (await response.json())["room"] == "4TKG9P"


async def test_without_a_token_any_key_will_do() -> None:
    answers = ScriptedAnswers()
    async with Serving(answers) as serving:
        assert await status(serving, Authorization="Bearer anything") == 200
