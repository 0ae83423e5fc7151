"""Staying registered with one of a list of room servers (spec: rooms §2.2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import aiohttp

from app.room.peerjs import (
    IdTaken,
    PeerJsSocket,
    SignalDown,
    SignalMessage,
    SignalRefused,
    new_token,
    register,
)
from app.room.signal_servers import SignalServer
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

ATTEMPT_S = 8.0
LAST_ATTEMPT_S = 20.0
FIRST_DELAY_S = 2.0
LONGEST_DELAY_S = 30.0
TAKEN_DELAY_S = 3.0
TAKEN_TRIES = 30

Sleep = Callable[[float], Awaitable[None]]


def reconnect_delay(tries: int) -> float:
    """Seconds before reconnect number ``tries`` (from 0): 2, 4, 8, 16, 30, 30, ..."""
    return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(tries, 10))


class Signaling:
    """This device's presence on one room server.

    ``on_message`` gets what other devices send, ``on_connected`` whether the server is there. Existing
    links do not need it, so losing the server ends nothing.
    """

    def __init__(self, servers: Sequence[SignalServer], sleep: Sleep = asyncio.sleep) -> None:
        self.on_message: Callable[[SignalMessage], None] = lambda _message: None
        self.on_connected: Callable[[bool], None] = lambda _connected: None
        self.servers = list(servers)
        self.server: SignalServer | None = None
        self.peer_id = ""
        self._sleep = sleep
        self._token = new_token()
        self._http: aiohttp.ClientSession | None = None
        self._socket: PeerJsSocket | None = None
        self._tasks = Tasks()
        self._closed = False

    async def open(self, peer_id: str = "", again: bool = False) -> str:
        """Registers with the first server that answers; returns the id, the server's when none is asked.

        ``again``: the id was this device's before it restarted. A server holds it until it misses the old
        connection, up to a minute, so a taken id is tried for a minute and a half.
        Raises LinkError: SignalDown when no server answers, IdTaken and SignalRefused from one that does.
        """
        for server in self.servers:
            try:
                return await self._open_patiently(server, peer_id, TAKEN_TRIES if again else 0)
            except SignalDown as error:
                log.info("room server %s: %s", server.label, error.what)
        tried = ", ".join(server.label for server in self.servers) or "none"
        raise SignalDown(f"No room server answers (tried: {tried}).", "Check the network connection.")

    async def _open_patiently(self, server: SignalServer, peer_id: str, tries: int) -> str:
        for _ in range(tries):
            try:
                return await self.open_at(server, peer_id)
            except IdTaken:
                await self._sleep(TAKEN_DELAY_S)
        return await self.open_at(server, peer_id)

    async def open_at(self, server: SignalServer, peer_id: str = "") -> str:
        """Registers with this server, leaving another one. Raises as ``open`` does."""
        await self._tasks.close()
        await self._leave()
        limit = LAST_ATTEMPT_S if server == self.servers[-1] else ATTEMPT_S
        await self._register(server, peer_id, limit)
        return self.peer_id

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def send(self, kind: str, destination: str, payload: Mapping[str, object]) -> None:
        """Sends to another device; dropped while the server is away."""
        if self._socket is not None:
            self._socket.send(kind, destination, payload)

    async def close(self) -> None:
        self._closed = True
        await self._tasks.close()
        await self._leave()
        if self._http is not None:
            await self._http.close()

    async def _leave(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def _register(self, server: SignalServer, peer_id: str, limit: float) -> None:
        if self._http is None:
            self._http = aiohttp.ClientSession()
        try:
            async with asyncio.timeout(limit):
                socket = await register(self._http, server, peer_id, self._token)
        except TimeoutError as error:
            raise SignalDown(f"The room server {server.label} does not answer.") from error
        self.server, self.peer_id, self._socket = server, socket.peer_id, socket
        socket.on_message = lambda message: self.on_message(message)
        socket.on_lost = self._lost
        socket.start()
        self.on_connected(True)

    def _lost(self) -> None:
        if self._closed or self._socket is None:
            return
        self.on_connected(False)
        self._tasks.start(self._reconnect(), "signal reconnect")

    async def _reconnect(self) -> None:
        await self._leave()
        tries = 0
        while not await self._came_back(reconnect_delay(tries)):
            tries += 1

    async def _came_back(self, delay: float) -> bool:
        await self._sleep(delay)
        if self.server is None or self._closed:
            return True
        try:
            await self._register(self.server, self.peer_id, LAST_ATTEMPT_S)
        except (SignalDown, IdTaken, SignalRefused) as error:
            log.info("room server is still away: %s", error.what)
            return False
        return True
