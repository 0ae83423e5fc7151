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
UNREAD_S = 60.0
"""How long a client may leave what is written unread before it is hung up on: others wait behind it."""
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
            await self._end()
        except Exception as error:
            if not self._response.prepared:
                raise
            if not isinstance(error, (ApiError, ConnectionError)):
                log.exception("an answer broke")
            await self._send(self._writer.fail(error if isinstance(error, ApiError) else inside(error)))
            await self._end()
        finally:
            keeper.cancel()
        return self._response

    async def _send_all(self, parts: AsyncGenerator[bytes]) -> None:
        async for part in parts:
            if part:
                await self._send(part)

    async def _send(self, part: bytes) -> None:
        async with self._writing:
            self._last = self._timing.now()
            if not self._response.prepared:
                await self._response.prepare(self._request)
            await self._response.write(part)

    async def _end(self) -> None:
        async with self._writing:
            self._last = self._timing.now()
            await self._response.write_eof()

    async def _keep_alive(self) -> None:
        """Signs of life go out beside it, so that one which nobody reads is noticed too."""
        async with asyncio.TaskGroup() as signs:
            while True:
                await self._timing.sleep(self._pause())
                silent = self._timing.now() - self._last
                if self._writing.locked():
                    if silent >= UNREAD_S:
                        return self._hang_up()
                elif silent >= QUIET_S:
                    self._last = self._timing.now()
                    signs.create_task(self._sign(), name="api sign of life")

    def _pause(self) -> float:
        """Seconds until there may be something to do."""
        return QUIET_S if self._writing.locked() else max(0.0, self._last + QUIET_S - self._timing.now())

    async def _sign(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._send(self._writer.open(None) + self._writer.alive(self._exchange.ahead))

    def _hang_up(self) -> None:
        """What waits to be written fails, and the request is cancelled."""
        if self._request.transport is not None:
            self._request.transport.abort()
