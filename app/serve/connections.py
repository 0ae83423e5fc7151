"""A bound on connections, and on how long one may stay without a whole request (spec: product A-004)."""

from __future__ import annotations

import asyncio

from aiohttp import web

MOST_CONNECTIONS = 64
HEADERS_S = 60.0
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\nContent-Length: 26\r\n\r\nToo many open connections."
)


class Connections:
    """Makes the protocol of each new connection; ``busy`` and ``idle`` frame every request."""

    def __init__(self, server: web.Server, most: int = MOST_CONNECTIONS, headers_s: float = HEADERS_S) -> None:
        self._server = server
        self._most = most
        self._headers_s = headers_s
        self._timers: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}

    def protocol(self) -> asyncio.Protocol:
        if len(self._server.connections) >= self._most:
            return _Refusing()
        protocol = self._server()
        self.idle(protocol)
        return protocol

    def busy(self, protocol: asyncio.BaseProtocol) -> None:
        timer = self._timers.pop(protocol, None)
        if timer is not None:
            timer.cancel()

    def idle(self, protocol: web.RequestHandler) -> None:
        """From now on a whole request's head must come in time."""
        self.busy(protocol)
        loop = asyncio.get_running_loop()
        self._timers[protocol] = loop.call_later(self._headers_s, self._expire, protocol)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _expire(self, protocol: web.RequestHandler) -> None:
        self._timers.pop(protocol, None)
        protocol.force_close()


class _Refusing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(_FULL)
        transport.close()
