"""A file server on 127.0.0.1 that does whatever a test wants of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from app.models.ranges import Span, read_span

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FileServer:
    """Answers in ``answers`` are used one after the other; the last one stays."""

    answers: list[Handler]
    base: str = ""
    ranges: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.ranges.append(request.headers.get("Range", ""))
        self.asked.append(dict(request.headers))
        handler = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await handler(request)

    @property
    def spans(self) -> list[Span]:
        """The ranges that were asked for, but for the first byte, by which a source is known."""
        found = (read_span(text.removeprefix("bytes=")) for text in self.ranges if text != "bytes=0-0")
        return [span for span in found if span is not None]

    def url(self, name: str = "model.gguf") -> str:
        return f"{self.base}/{name}"


@asynccontextmanager
async def file_server(*answers: Handler) -> AsyncGenerator[FileServer]:
    server = FileServer(list(answers))
    application = web.Application()
    application.router.add_get("/{name}", server.answer)
    application.on_response_prepare.append(_name_version)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def whole(content: bytes) -> Handler:
    """Knows no ranges: always 200 and everything."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=content)

    return answer


def ranged(content: bytes) -> Handler:
    """A proper server: 206 from the byte asked for to the last one asked for, 416 past the end."""

    async def answer(request: web.Request) -> web.Response:
        asked = request.headers.get("Range", "")
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, end = int(first or 0), int(last or len(content) - 1)
        if asked and start >= len(content):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        extent = {"Content-Range": f"bytes {start}-{end}/{len(content)}"} if asked else {}
        return web.Response(status=206 if asked else 200, body=content[start : end + 1], headers=extent)

    return answer


def failing(status: int, headers: dict[str, str] | None = None) -> Handler:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers)

    return answer


def tagged(tag: str, handler: Handler) -> Handler:
    """As ``handler``, naming a version; a range of another one is answered with the whole file."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers.get("If-Range", tag) != tag:
            headers = {name: value for name, value in request.headers.items() if name != "Range"}
            request = request.clone(headers=headers)
        request[TAG] = tag
        return await handler(request)

    return answer


def redirecting(target: str) -> Handler:
    async def answer(_request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(target)

    return answer


TAG = web.RequestKey("tag", str)


async def _name_version(request: web.Request, response: web.StreamResponse) -> None:
    if TAG in request:
        response.headers["ETag"] = request[TAG]


def breaking_off(content: bytes, after: int) -> Handler:
    """Promises everything, sends the beginning and closes the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[:after])
        assert request.transport
        request.transport.close()
        return response

    return answer


def silent(seconds: float = 30.0) -> Handler:
    """Takes the question and says nothing."""

    async def answer(_request: web.Request) -> web.Response:
        await asyncio.sleep(seconds)
        return web.Response()

    return answer


def stalling(content: bytes, after: int) -> Handler:
    """Sends the beginning and then nothing, with the connection open."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(content))})
        await response.prepare(request)
        await response.write(content[:after])
        await asyncio.sleep(30)
        return response

    return answer


def endless() -> Handler:
    """A body without a length and without an end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(bytes(1 << 16))

    return answer
