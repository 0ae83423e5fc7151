"""One registration with a PeerJS server: a WebSocket under one peer id (spec: rooms §2.3)."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import aiohttp

from app.core.errors import LinkError
from app.room.signal_servers import SignalServer
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

VERSION = "1.5.4"
HEARTBEAT_S = 5.0
MAX_MESSAGE = 256 * 1024
MAX_ID = 128
_ID = re.compile(rf"[ -~]{{1,{MAX_ID}}}")
"""Any id in ASCII: proofs hash it, and a lone half of a character has no bytes."""
_OUTBOX = 512


class SignalDown(LinkError):
    """The server cannot be reached or answers nonsense; another one may do."""


class IdTaken(LinkError):
    """The server answers, and the peer id is in use."""


class SignalRefused(LinkError):
    """The server answers, and turns this application away."""


@dataclass(frozen=True)
class SignalMessage:
    """OFFER, ANSWER, CANDIDATE, LEAVE or EXPIRE as it came; ``source`` is the peer it is about."""

    kind: str
    source: str
    payload: Mapping[str, object]


class PeerJsSocket:
    """A registered id. ``on_lost`` is called once when the server goes away, never after ``close``."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, peer_id: str) -> None:
        self.peer_id = peer_id
        self.on_message: Callable[[SignalMessage], None] = lambda _message: None
        self.on_lost: Callable[[], None] = lambda: None
        self._socket = socket
        self._outbox: asyncio.Queue[str] = asyncio.Queue(_OUTBOX)
        self._tasks = Tasks()

    def start(self) -> None:
        """Begins to read; set the callbacks first, since a knock can follow at once."""
        self._tasks.start(self._read(), f"signal read {self.peer_id}")
        self._tasks.start(self._write(), f"signal write {self.peer_id}")
        self._tasks.start(self._beat(), f"signal heartbeat {self.peer_id}")

    def send(self, kind: str, destination: str = "", payload: Mapping[str, object] | None = None) -> None:
        """Queues one message; quietly drops it when the server has stopped reading."""
        message: dict[str, object] = {"type": kind}
        if destination:
            message |= {"dst": destination, "payload": payload or {}}
        try:
            self._outbox.put_nowait(json.dumps(message))
        except asyncio.QueueFull:
            log.warning("the room server reads nothing; a %s was dropped", kind)

    async def close(self) -> None:
        self.on_lost = lambda: None
        await self._tasks.close()
        await self._socket.close()

    async def _read(self) -> None:
        async for frame in self._socket:
            message = read_signal(frame)
            if message is not None:
                self._give(message)
        self.on_lost()

    def _give(self, message: SignalMessage) -> None:
        """The border where another device's bad message ends, whatever it set off."""
        try:
            self.on_message(message)
        except Exception:
            log.exception("a %s from %s went wrong", message.kind, message.source)

    async def _write(self) -> None:
        try:
            while True:
                await self._socket.send_str(await self._outbox.get())
        except (ConnectionError, aiohttp.ClientError):
            await self._socket.close()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            self.send("HEARTBEAT")


async def register(http: aiohttp.ClientSession, server: SignalServer, peer_id: str, token: str) -> PeerJsSocket:
    """Registers ``peer_id`` ("" asks the server for one); the socket is not started yet.

    Raises SignalDown, IdTaken or SignalRefused.
    """
    try:
        peer_id = peer_id or await _new_id(http, server)
        url = f"{server.socket_base}peerjs"
        query = {"key": server.key, "id": peer_id, "token": token, "version": VERSION}
        socket = await http.ws_connect(url, params=query, max_msg_size=MAX_MESSAGE)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise SignalDown(f"The room server {server.label} cannot be reached.") from error
    try:
        await _until_open(socket, server)
    except BaseException:
        await socket.close()
        raise
    return PeerJsSocket(socket, peer_id)


def new_token() -> str:
    """What tells the server that a second registration of an id is the same device coming back."""
    return secrets.token_hex(8)


async def _new_id(http: aiohttp.ClientSession, server: SignalServer) -> str:
    stamp = f"{int(time.time() * 1000)}{secrets.randbelow(10**9)}"
    url = f"{server.http_base}{server.key}/id"
    async with http.get(url, params={"ts": stamp, "version": VERSION}) as response:
        text = (await response.content.read(MAX_ID + 1)).decode(errors="replace").strip()
    if response.status != 200 or not text or len(text) > MAX_ID:
        raise SignalDown(f"The room server {server.label} gave no id.")
    return text


async def _until_open(socket: aiohttp.ClientWebSocketResponse, server: SignalServer) -> None:
    frame = await socket.receive()
    message = read_signal(frame)
    kind = message.kind if message else ""
    if kind == "ID-TAKEN":
        raise IdTaken("This room code is in use.", "Open a room with another code.")
    if kind in ("INVALID-KEY", "ERROR"):
        raise SignalRefused(f"The room server {server.label} refused this application.")
    if kind != "OPEN":
        raise SignalDown(f"The room server {server.label} does not answer as one.")


def read_signal(frame: aiohttp.WSMessage) -> SignalMessage | None:
    if frame.type is not aiohttp.WSMsgType.TEXT:
        return None
    try:
        raw = json.loads(cast("str", frame.data))
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    members = cast("dict[str, object]", raw)
    kind, source, payload = members.get("type"), members.get("src"), members.get("payload")
    if not isinstance(kind, str):
        return None
    return SignalMessage(
        kind,
        source if isinstance(source, str) and _ID.fullmatch(source) else "",
        cast("Mapping[str, object]", payload) if isinstance(payload, dict) else {},
    )
