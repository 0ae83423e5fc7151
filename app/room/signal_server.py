"""A PeerJS-compatible room server inside the application, so that a room on a LAN needs no outside service.

Two routes of an aiohttp application: ``GET /{key}/id`` and the WebSocket ``GET /peerjs``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import cast

from aiohttp import WSMsgType, web

log = logging.getLogger(__name__)

KEY = "peerjs"
EXPIRE_S = 5.0
SILENT_S = 60.0
MAX_MESSAGE = 64 * 1024
MAX_CLIENTS = 256
MAX_WAITING_FOR_ONE = 64
MAX_WAITING = 1024
MAX_OUTBOX = 256

_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_ -]{0,62}[A-Za-z0-9])?")
_RELAYED = ("OFFER", "ANSWER", "CANDIDATE", "LEAVE", "EXPIRE")
_HELD = ("OFFER", "ANSWER", "CANDIDATE")


@dataclass
class _Client:
    token: str
    socket: web.WebSocketResponse
    outbox: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(MAX_OUTBOX))

    def post(self, message: dict[str, object]) -> None:
        """Queues a message; a client that does not read loses it."""
        try:
            self.outbox.put_nowait(json.dumps(message))
        except asyncio.QueueFull:
            log.warning("a client of the room server reads nothing")


@dataclass
class _Waiting:
    sender: str
    message: dict[str, object]
    expiry: asyncio.TimerHandle


class SignalHub:
    """Who is registered, and what waits for whom."""

    def __init__(self, expire_s: float = EXPIRE_S) -> None:
        self._expire_s = expire_s
        self._clients: dict[str, _Client] = {}
        self._waiting: dict[str, deque[_Waiting]] = {}

    def admit(self, peer_id: str, token: str, socket: web.WebSocketResponse) -> _Client | str:
        """The new client, or the refusal's type. The same token takes its own id over again."""
        known = self._clients.get(peer_id)
        if known is not None and known.token != token:
            return "ID-TAKEN"
        if known is None and len(self._clients) >= MAX_CLIENTS:
            return "ERROR"
        client = self._clients[peer_id] = _Client(token, socket)
        client.post({"type": "OPEN"})
        for waiting in self._waiting.pop(peer_id, ()):
            waiting.expiry.cancel()
            client.post(waiting.message)
        return client

    def leave(self, peer_id: str, client: _Client) -> None:
        if self._clients.get(peer_id) is client:
            del self._clients[peer_id]

    def relay(self, sender: str, message: dict[str, object]) -> None:
        """Passes one message on, or keeps it a while for a peer that may come back."""
        kind, destination = message.get("type"), message.get("dst")
        if kind not in _RELAYED or not isinstance(destination, str):
            return
        passed = {"type": kind, "src": sender, "dst": destination, "payload": message.get("payload")}
        client = self._clients.get(destination)
        if client is not None:
            client.post(passed)
        elif kind in _HELD:
            self._hold(sender, destination, passed)

    def _hold(self, sender: str, destination: str, message: dict[str, object]) -> None:
        queue = self._waiting.setdefault(destination, deque())
        if len(queue) >= MAX_WAITING_FOR_ONE or sum(map(len, self._waiting.values())) >= MAX_WAITING:
            return
        expiry = asyncio.get_running_loop().call_later(self._expire_s, self._expired, destination)
        queue.append(_Waiting(sender, message, expiry))

    def _expired(self, destination: str) -> None:
        """The oldest message for ``destination`` was not fetched; its sender learns so once."""
        queue = self._waiting.get(destination)
        if not queue:
            return
        oldest = queue.popleft()
        if not queue:
            del self._waiting[destination]
        sender = self._clients.get(oldest.sender)
        if sender is not None and oldest.message["type"] == "OFFER":
            sender.post({"type": "EXPIRE", "src": destination, "dst": oldest.sender})

    async def close(self) -> None:
        for queue in self._waiting.values():
            for waiting in queue:
                waiting.expiry.cancel()
        self._waiting.clear()
        for client in list(self._clients.values()):
            await client.socket.close()


def add_room_server(application: web.Application, hub: SignalHub) -> None:
    """Adds the room server's two routes; the application's shutdown closes ``hub``."""
    handler = _Handler(hub)
    application.router.add_get("/{key}/id", handler.new_id)
    application.router.add_get("/peerjs", handler.socket)
    application.on_shutdown.append(handler.shutdown)


class _Handler:
    def __init__(self, hub: SignalHub) -> None:
        self._hub = hub

    async def new_id(self, request: web.Request) -> web.Response:
        if request.match_info["key"] != KEY:
            raise web.HTTPUnauthorized
        return web.Response(text=str(uuid.uuid4()), headers={"Access-Control-Allow-Origin": "*"})

    async def shutdown(self, _application: web.Application) -> None:
        await self._hub.close()

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, receive_timeout=SILENT_S)
        await socket.prepare(request)
        peer_id, token = request.query.get("id", ""), request.query.get("token", "")
        if request.query.get("key") != KEY:
            return await _turn_away(socket, "INVALID-KEY", "This key is not known here")
        if not _ID.fullmatch(peer_id) or not 0 < len(token) <= 64:
            return await _turn_away(socket, "ERROR", "No id or token was given")
        client = self._hub.admit(peer_id, token, socket)
        if isinstance(client, str):
            return await _turn_away(socket, client, "ID is taken")
        try:
            await self._serve(peer_id, client)
        finally:
            self._hub.leave(peer_id, client)
        return socket

    async def _serve(self, peer_id: str, client: _Client) -> None:
        writer = asyncio.create_task(_write(client), name=f"signal server write {peer_id}")
        try:
            async for frame in client.socket:
                if frame.type is WSMsgType.TEXT:
                    self._hub.relay(peer_id, read_request(cast("str", frame.data)))
        except TimeoutError:
            log.info("a client of the room server went silent")
        finally:
            writer.cancel()
            await client.socket.close()


async def _write(client: _Client) -> None:
    try:
        while True:
            await client.socket.send_str(await client.outbox.get())
    except ConnectionError:
        return


async def _turn_away(socket: web.WebSocketResponse, kind: str, why: str) -> web.WebSocketResponse:
    await socket.send_str(json.dumps({"type": kind, "payload": {"msg": why}}))
    await socket.close()
    return socket


def read_request(text: str) -> dict[str, object]:
    """What a client said; empty for what makes no sense."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", raw) if isinstance(raw, dict) else {}
