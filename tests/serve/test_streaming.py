"""Silences, queues and clients that hang up."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import pytest

from app.prompt.ask import Ask, UserMessage
from app.room.api.events import Ended, Queued, Reason, Refusal, Refused
from app.serve.chat_events import ChatWriter
from app.serve.chat_request import ChatRequest
from app.serve.config import ServeConfig
from app.serve.exchange import Exchange
from app.serve.line import Line
from tests.serve.scripted import (
    HELLO,
    STARTED,
    HandTiming,
    Pause,
    ScriptedAnswers,
    ScriptedStream,
    Serving,
    Watch,
    counting,
    words,
)

HI = [{"role": "user", "content": "Hi"}]
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": HI},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": HI},
    RESPONSES: {"input": "Hi"},
}
ALIVE = {
    CHAT: b": working\n\n",
    MESSAGES: b'event: ping\ndata: {"type":"ping"}\n\n',
    RESPONSES: b"event: response.in_progress\n",
}


async def next_event(response: aiohttp.ClientResponse) -> bytes:
    return await response.content.readuntil(b"\n\n")


def streamed(session: aiohttp.ClientSession, serving: Serving, path: str) -> Any:
    return asyncio.create_task(session.post(serving.url + path, json={**BODIES[path], "stream": True}).__aenter__())


@pytest.mark.parametrize("path", BODIES)
async def test_ten_silent_seconds_bring_a_sign_of_life(path: str) -> None:
    reading, timing = Pause(), HandTiming()
    answers = ScriptedAnswers([HELLO[0], reading, *HELLO[1:]])
    async with Serving(answers, timing=timing) as serving, aiohttp.ClientSession() as session:
        response = await streamed(session, serving, path)
        await next_event(response)
        if path == RESPONSES:
            await next_event(response)
        await reading.reached.wait()
        for _ in range(3):
            await timing.pass_time(9.9)
            await timing.pass_time(0.1)
            assert (await next_event(response)).startswith(ALIVE[path])
        reading.go.set()
        rest = await response.read()
    assert b"Hel" in rest
    assert rest.count(ALIVE[path]) == (1 if path == MESSAGES else 0)


@pytest.mark.parametrize("path", BODIES)
async def test_a_client_in_the_queue_hears_something_and_then_the_answer(path: str) -> None:
    waiting, timing = Pause(), HandTiming()
    answers = ScriptedAnswers([Queued(2), waiting, *HELLO])
    async with Serving(answers, timing=timing) as serving, aiohttp.ClientSession() as session:
        asking = streamed(session, serving, path)
        await waiting.reached.wait()
        await timing.pass_time(10)
        response = await asking
        first = await next_event(response)
        waiting.go.set()
        rest = await response.read()
    starts = {CHAT: b": queued, 2 ahead", MESSAGES: b"event: message_start", RESPONSES: b"event: response.created"}
    assert first.startswith(starts[path])
    assert (first + rest).count(starts[path]) == 1
    assert b"Hel" in rest


@pytest.mark.parametrize("path", BODIES)
async def test_a_refusal_after_a_sign_of_life_is_an_error_in_the_stream(path: str) -> None:
    waiting, timing = Pause(), HandTiming()
    answers = ScriptedAnswers([Queued(1), waiting, Refused(Refusal.CONTEXT, "", 9_000, 4_064)])
    async with Serving(answers, timing=timing) as serving, aiohttp.ClientSession() as session:
        asking = streamed(session, serving, path)
        await waiting.reached.wait()
        await timing.pass_time(10)
        response = await asking
        waiting.go.set()
        told = await response.read()
    assert response.status == 200
    assert b"9000" in told
    assert b"[DONE]" not in told
    ends = {CHAT: b'"code":"context_length_exceeded"', MESSAGES: b"event: error", RESPONSES: b"event: response.failed"}
    assert ends[path] in told


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", BODIES)
async def test_a_client_that_hangs_up_frees_the_room_at_once(path: str, stream: bool) -> None:
    speaking = Pause()
    answers = ScriptedAnswers([*HELLO[:2], speaking], HELLO)
    async with Serving(answers) as serving, aiohttp.ClientSession() as session:
        asking = asyncio.create_task(session.post(serving.url + path, json={**BODIES[path], "stream": stream}))
        await speaking.reached.wait()
        asking.cancel()
        if stream and asking.done():
            (await asking).close()
        await session.close()
        await answers.freed.wait()
        assert answers.open == 0
        async with aiohttp.ClientSession() as other, other.post(serving.url + path, json=BODIES[path]) as response:
            assert response.status == 200
        assert serving.server.status.served == 1


async def test_one_at_a_time_waits_in_the_room_in_order_and_no_more_than_may_here() -> None:
    pauses = [Pause() for _ in range(3)]
    answers = ScriptedAnswers(*([pause, *HELLO] for pause in pauses))
    config = ServeConfig(port=0, max_queue=2)
    watch = Watch()
    async with Serving(answers, config, on_change=watch) as serving, aiohttp.ClientSession() as session:
        asking: list[asyncio.Task[aiohttp.ClientResponse]] = []
        for place in range(3):
            body = {"messages": [{"role": "user", "content": str(place)}]}
            asking.append(asyncio.create_task(session.post(serving.url + CHAT, json=body)))
            await watch.waiting(place)
        async with session.post(serving.url + CHAT, json=BODIES[CHAT]) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
        async with session.post(serving.url + MESSAGES, json=BODIES[MESSAGES]) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (529, "5")
        for pause, task in zip(pauses, asking, strict=True):
            await pause.reached.wait()
            pause.go.set()
            assert (await task).status == 200
    assert answers.most_open == 1
    assert [ask.messages[0].text for ask in answers.asks] == ["0", "1", "2"]


async def test_the_next_is_asked_when_the_answer_before_has_begun() -> None:
    """The room itself says how many it writes at a time."""
    waits, writes = Pause(), Pause()
    answers = ScriptedAnswers([waits, STARTED, writes, *HELLO[1:]], HELLO)
    watch = Watch()
    async with Serving(answers, on_change=watch) as serving, aiohttp.ClientSession() as session:
        first = asyncio.create_task(session.post(serving.url + CHAT, json=BODIES[CHAT]))
        await waits.reached.wait()
        second = asyncio.create_task(session.post(serving.url + CHAT, json=BODIES[CHAT]))
        await watch.waiting(1)
        assert len(answers.asks) == 1
        waits.go.set()
        await writes.reached.wait()
        assert (await second).status == 200
        assert (answers.most_open, first.done()) == (2, False)
        writes.go.set()
        assert (await first).status == 200
    assert (watch.status.waiting, serving.server.status.served) == (0, 2)


async def test_a_queue_of_none_takes_a_request_only_when_idle() -> None:
    pause = Pause()
    answers = ScriptedAnswers([pause, *HELLO], HELLO)
    async with Serving(answers, ServeConfig(port=0, max_queue=0)) as serving, aiohttp.ClientSession() as session:
        first = asyncio.create_task(session.post(serving.url + CHAT, json=BODIES[CHAT]))
        await pause.reached.wait()
        async with session.post(serving.url + CHAT, json=BODIES[CHAT]) as refused:
            assert refused.status == 429
        pause.go.set()
        assert (await first).status == 200
        async with session.post(serving.url + CHAT, json=BODIES[CHAT]) as taken:
            assert taken.status == 200


async def test_a_client_that_leaves_the_line_lets_the_next_one_through() -> None:
    pause = Pause()
    answers, watch = ScriptedAnswers([pause, *HELLO], HELLO), Watch()
    async with (
        Serving(answers, on_change=watch) as serving,
        aiohttp.ClientSession() as session,
        aiohttp.ClientSession() as impatient,
    ):
        first = asyncio.create_task(session.post(serving.url + CHAT, json=BODIES[CHAT]))
        await pause.reached.wait()
        second = asyncio.create_task(impatient.post(serving.url + CHAT, json=BODIES[CHAT]))
        await watch.waiting(1)
        second.cancel()
        await watch.waiting(0)
        pause.go.set()
        assert (await first).status == 200
        async with session.post(serving.url + CHAT, json=BODIES[CHAT]) as third:
            assert third.status == 200
    assert len(answers.asks) == 2


async def test_stopping_the_server_breaks_off_what_runs() -> None:
    pause = Pause()
    answers = ScriptedAnswers([*HELLO[:2], pause])
    async with Serving(answers) as serving, aiohttp.ClientSession() as session:
        response = await streamed(session, serving, CHAT)
        await pause.reached.wait()
        await serving.server.stop()
        assert answers.open == 0
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_who_waits_here_hears_how_many_come_before() -> None:
    pause, timing, watch = Pause(), HandTiming(), Watch()
    answers = ScriptedAnswers([pause, *HELLO], HELLO)
    async with Serving(answers, timing=timing, on_change=watch) as serving, aiohttp.ClientSession() as session:
        first = streamed(session, serving, CHAT)
        await pause.reached.wait()
        second = streamed(session, serving, CHAT)
        await watch.waiting(1)
        await timing.pass_time(10, sleepers=2)
        assert await next_event(await first) == b": working\n\n"
        assert await next_event(await second) == b": queued, 1 ahead\n\n"
        pause.go.set()
        for asking in (first, second):
            assert (await (await asking).read()).endswith(b"data: [DONE]\n\n")


async def unread(serving: Serving) -> asyncio.StreamWriter:
    """A client that asks for a stream and reads none of it."""
    body = json.dumps({**BODIES[CHAT], "stream": True, "max_tokens": 60_000}).encode()
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    small.connect(("127.0.0.1", serving.server.port))
    _, writer = await asyncio.open_connection(sock=small, limit=1)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1:{serving.server.port}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    return writer


async def pass_all_time(timing: HandTiming) -> None:
    while True:
        await timing.pass_time(10)
        await asyncio.sleep(0)


async def test_a_client_that_does_not_read_is_hung_up_on_and_the_next_one_answered() -> None:
    timing, heard = HandTiming(), Watch()
    long = ScriptedAnswers([HELLO[0], *words("x" * 4_000) * 2_000, HELLO[-1]], HELLO)
    async with Serving(long, timing=timing, on_change=heard) as serving, aiohttp.ClientSession() as session:
        writer = await unread(serving)
        await heard.waiting(0)
        passing = asyncio.create_task(pass_all_time(timing))
        await long.freed.wait()
        async with session.post(serving.url + CHAT, json=BODIES[CHAT]) as second:
            assert second.status == 200
        passing.cancel()
        writer.close()
    assert (long.open, heard.status.served) == (0, 1)


async def test_whoever_waits_is_asked_for_as_soon_as_the_room_has_ended() -> None:
    line = Line(1)
    answers = ScriptedAnswers(HELLO)
    first, second = (Exchange(answers, line, chat_ask()) for _ in range(2))
    parts = first.bytes(ChatWriter(ChatRequest(chat_ask()), counting("m")))
    seen = [part async for part in take(parts, 4)]
    assert b"[DONE]" in seen[-1]
    assert (first.answered, answers.open, second.ahead) == (True, 0, 0)
    await parts.aclose()


def chat_ask() -> Ask:
    return Ask((UserMessage("Hi"),))


async def take(parts: AsyncGenerator[bytes], most: int) -> AsyncIterator[bytes]:
    for _ in range(most):
        yield await anext(parts)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_broke_off_is_not_counted(stream: bool) -> None:
    broken = Ended(Reason.ABORTED, why="stopped")
    answers = ScriptedAnswers([*HELLO[:2], broken], [*HELLO[:2]], HELLO)
    async with Serving(answers) as serving, aiohttp.ClientSession() as session:
        for served in (0, 0, 1):
            body = {**BODIES[CHAT], "stream": stream}
            async with session.post(serving.url + CHAT, json=body) as response:
                await response.read()
            assert serving.server.status.served == served


class Broken(ScriptedAnswers):
    """A room with a mistake in it, that shows after what was said."""

    def ask(self, ask: Ask) -> ScriptedStream:
        stream = super().ask(ask)
        stream.fault = ZeroDivisionError("inside")
        return stream


@pytest.mark.parametrize("path", BODIES)
async def test_a_mistake_in_the_program_is_told_and_logged(path: str, caplog: pytest.LogCaptureFixture) -> None:
    async with Serving(Broken([HELLO[0], *words("Hel")])) as serving, aiohttp.ClientSession() as session:
        async with session.post(serving.url + path, json=BODIES[path]) as whole:
            assert whole.status == 500
            assert "ZeroDivisionError" in await whole.text()
        told = await (await streamed(session, serving, path)).read()
        assert serving.answers.open == 0
    assert b"ZeroDivisionError" in told
    assert caplog.text.count("Traceback") == 2
