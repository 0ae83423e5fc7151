"""An answer as a stream to one client, kept alive through silences (spec: product A-041, A-055, A-082)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import Protocol

from aiohttp import web

from app.core.clock import SystemClock
from app.serve.errors import ApiError, inside
from app.serve.exchange import Exchange
from app.serve.writing import Writer

log = logging.getLogger(__name__)

QUIET_S = 10.0
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Timing(Protocol):
    """Monotonic seconds, and waiting for them to pass."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemTiming(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Streaming:
    """The status is sent with the first bytes, so that an ask the room refuses still gets its own."""

    def __init__(self, request: web.Request, exchange: Exchange, writer: Writer, timing: Timing) -> None:
        self._request = request
        self._exchange = exchange
        self._writer = writer
        self._timing = timing
        self._response = web.StreamResponse(headers=HEADERS)
        self._last = timing.now()
        self._writing = asyncio.Lock()

    async def run(self) -> web.StreamResponse:
        """Raises as long as nothing was sent; later errors are written into the stream, known or not."""
        keeper = asyncio.create_task(self._keep_alive(), name="api keep-alive")
        try:
            async with contextlib.aclosing(self._exchange.bytes(self._writer)) as parts:
                await self._send_all(parts)
        except Exception as error:
            if not self._response.prepared:
                raise
            if not isinstance(error, (ApiError, ConnectionError)):
                log.exception("an answer broke")
            await self._send(self._writer.fail(error if isinstance(error, ApiError) else inside(error)))
        finally:
            keeper.cancel()
        await self._response.write_eof()
        return self._response

    async def _send_all(self, parts: AsyncGenerator[bytes]) -> None:
        async for part in parts:
            if part:
                await self._send(part)

    async def _send(self, part: bytes) -> None:
        self._last = self._timing.now()
        async with self._writing:
            if not self._response.prepared:
                await self._response.prepare(self._request)
            await self._response.write(part)

    async def _keep_alive(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await self._timing.sleep(max(0.0, self._last + QUIET_S - self._timing.now()))
                if self._timing.now() - self._last >= QUIET_S:
                    await self._send(self._writer.open(None) + self._writer.alive(self._exchange.ahead))
