"""Every row of the status map, in the shapes of both families (spec: product §3.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from app.prompt.pieces import CallBegun
from app.room.api.events import Ended, Reason, Refusal, ServedModel
from app.serve.config import ServeConfig
from tests.serve.scripted import ENDED, STARTED, ScriptedAnswers, Serving, Step, answer, refused, spoken, words

HI = [{"role": "user", "content": "Hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": HI},
}
ROWS: list[tuple[str, Sequence[Step], int, int, int]] = [
    ("bad", refused(Refusal.BAD), 400, 400, 0),
    ("too long", refused(Refusal.CONTEXT, tokens=9_000, most=4_064), 400, 400, 0),
    ("queue", refused(Refusal.QUEUE), 429, 529, 5),
    ("off", refused(Refusal.OFF), 503, 529, 0),
    ("degraded", refused(Refusal.DEGRADED), 503, 529, 5),
    ("loading", refused(Refusal.LOADING), 503, 529, 5),
    ("gone", refused(Refusal.GONE), 503, 529, 5),
    ("silent", refused(Refusal.SILENT), 504, 504, 0),
    ("stopped", answer(words("Hel"), ended=Ended(Reason.ABORTED)), 503, 529, 0),
    ("failed", answer(words("Hel"), ended=Ended(Reason.FAILED, why="A device is gone.")), 500, 500, 0),
    ("broken off", [STARTED], 500, 500, 0),
    ("out of order", words("Hel"), 500, 500, 0),
    ("unknown tool", [STARTED, spoken(CallBegun(0, "rm")), ENDED], 500, 500, 0),
]


async def ask(serving: Serving, path: str, body: object = None, **options: Any) -> tuple[int, dict[str, Any], str]:
    async with aiohttp.ClientSession() as session:
        kind = options.pop("method", "POST")
        sent = {"json": BODIES[path] if body is None else body} if "data" not in options and kind == "POST" else {}
        async with session.request(kind, serving.url + path, **sent, **options) as response:
            return response.status, await response.json(), response.headers.get("Retry-After", "")


def check_shape(path: str, told: dict[str, Any]) -> None:
    if path.startswith("/v1/messages"):
        assert told["type"] == "error"
        assert set(told["error"]) == {"type", "message"}
    else:
        assert set(told["error"]) == {"message", "type", "param", "code"}
    assert told["error"]["message"]


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
async def test_what_the_room_says(row: tuple[str, Sequence[Step], int, int, int], path: str) -> None:
    _, script, openai, anthropic, retry_s = row
    async with Serving(ScriptedAnswers(script)) as serving:
        for stream in (False, True):
            if stream and any(event is STARTED for event in script):
                continue
            status, told, retry = await ask(serving, path, {**BODIES[path], "stream": stream})
            assert status == (anthropic if path == "/v1/messages" else openai)
            assert retry == (str(retry_s) if retry_s else "")
            check_shape(path, told)
        assert serving.answers.open == 0
        assert serving.server.status.served == 0


@pytest.mark.parametrize("path", BODIES)
async def test_a_prompt_that_is_too_long_is_told_with_both_numbers(path: str) -> None:
    async with Serving(ScriptedAnswers(refused(Refusal.CONTEXT, tokens=9_000, most=4_064))) as serving:
        _, told, _ = await ask(serving, path)
        assert "9000" in told["error"]["message"]
        assert "4064" in told["error"]["message"]
        if path != "/v1/messages":
            assert told["error"]["code"] == "context_length_exceeded"
        serving.answers.model = ServedModel("m", "M", 100)
        long = "x" * 801
        body = {
            **BODIES[path],
            **({"input": long} if "responses" in path else {"messages": [{**HI[0], "content": long}]}),
        }
        asks = len(serving.answers.asks)
        status, told, _ = await ask(serving, path, body)
        assert (status, len(serving.answers.asks)) == (400, asks)
        assert "too long" in told["error"]["message"]


@pytest.mark.parametrize("path", BODIES)
async def test_no_model(path: str) -> None:
    async with Serving(ScriptedAnswers(model=None)) as serving:
        status, told, retry = await ask(serving, path)
    assert (status, retry) == (529 if path == "/v1/messages" else 503, "5")
    check_shape(path, told)


@pytest.mark.parametrize("path", [*BODIES, "/v1/messages/count_tokens"])
async def test_tools_with_a_model_that_knows_none(path: str) -> None:
    tool = {"type": "function", "name": "t", "function": {"name": "t"}, "parameters": {}}
    if path.startswith("/v1/messages"):
        tool = {"name": "t", "input_schema": {}}
    async with Serving(ScriptedAnswers(model=ServedModel("m", "M", 4_096, tools=False))) as serving:
        body = {**BODIES.get(path, BODIES["/v1/messages"]), "tools": [tool]}
        status, told, _ = await ask(serving, path, body)
    assert status == 400
    assert "tools" in told["error"]["message"]


@pytest.mark.parametrize("path", BODIES)
async def test_what_the_request_is_refused_for(path: str) -> None:
    async with Serving(config=ServeConfig(port=0, token="t")) as serving:
        assert (await ask(serving, path))[0] == 401
        key = {"x-api-key": "t"}
        rows: list[tuple[int, dict[str, Any]]] = [
            (403, {"headers": {**key, "Origin": "https://evil.example"}}),
            (405, {"headers": key, "method": "PUT"}),
            (413, {"headers": key, "data": b" " * ((4 << 20) + 1)}),
            (400, {"headers": key, "data": b"{"}),
            (400, {"headers": key, "data": b"[1]"}),
            (400, {"headers": key, "data": b'{"messages":' + b"[" * 100_000}),
            (400, {"headers": key, "data": b'{"model":"m","max_tokens":9,"temperature":NaN}'}),
            (400, {"headers": key, "data": b'{"model":"m","input":"\\ud800","messages":[]}'}),
        ]
        for expected, options in rows:
            status, told, _ = await ask(serving, path, **options)
            assert status == expected, told
            check_shape(path, told)


async def test_paths_that_are_not_served() -> None:
    async with Serving() as serving:
        for path in ("completions", "embeddings", "responses/input_tokens", "responses/compact", "other"):
            status, told, _ = await ask(serving, f"/v1/{path}", {})
            assert status == 404
            check_shape(path, told)
        async with aiohttp.ClientSession() as session, session.put(f"{serving.url}/v1/models") as response:
            assert response.status == 405
            assert "GET" in response.headers["Allow"]
        for path in ("/v1/responses/resp_none", "/v1/responses/resp_none/input_items", "/v1/models/other"):
            assert (await ask(serving, path, method="GET"))[0] == 404
        assert (await ask(serving, "/v1/responses/resp_none?stream=true", method="GET"))[0] == 400
