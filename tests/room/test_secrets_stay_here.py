"""No key, pass or mesh key is ever sent or logged; a pass and the mesh key only in ``admit``."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import ClientWebSocketResponse
from aiortc import RTCDataChannel

from app.room.binarypack import unpack
from app.room.gate import Credentials, Gate
from tests.room.loopback import Device, outcome, room_server, until, use_loopback

HELLO = {"name": "otter", "meta": {}}


class Overheard:
    """Everything that leaves before encryption, and everything that is logged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self.channels: list[bytes] = []
        self.signals: list[str] = []
        self._log = caplog
        caplog.set_level(logging.DEBUG)
        send, send_str = RTCDataChannel.send, ClientWebSocketResponse.send_str

        def channel_send(channel: Any, data: bytes) -> None:
            self.channels.append(data)
            send(channel, data)

        async def signal_send(socket: Any, data: str, *rest: Any) -> None:
            self.signals.append(data)
            await send_str(socket, data, *rest)

        monkeypatch.setattr(RTCDataChannel, "send", channel_send)
        monkeypatch.setattr(ClientWebSocketResponse, "send_str", signal_send)

    def holding(self, secret: str) -> list[bytes]:
        """All that holds the secret in any of its forms."""
        everything = [*self.channels, *(text.encode() for text in self.signals)]
        everything += [record.getMessage().encode() for record in self._log.records]
        return [data for data in everything if any(form in data for form in _forms(secret))]


def _forms(secret: str) -> Iterator[bytes]:
    raw = base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))
    yield secret.encode()
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield secret.encode().hex().encode()
    yield base64.b64encode(raw).rstrip(b"=")


def _is_admit(data: bytes) -> bool:
    message = unpack(data)
    return isinstance(message, dict) and message.get("t") == "admit"


@pytest.fixture
def overheard(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Overheard:
    use_loopback(monkeypatch)
    return Overheard(monkeypatch, caplog)


async def test_secrets_stay_here(overheard: Overheard) -> None:
    async with room_server() as server:
        gate = Gate()
        creator, ann, bob, liar = (Device([server], 2) for _ in range(4))
        await creator.transport.open_room("4TKG9P", gate, {"name": "creator", "meta": {}})
        joined = await ann.transport.join("4TKG9P", Credentials(key=gate.key), HELLO)
        await ann.transport.join("4TKG9P", Credentials(gate.key, joined.pass_text), HELLO)
        waiting = asyncio.create_task(bob.transport.join("4TKG9P", Credentials(), HELLO))
        await until(lambda: creator.waiting)
        creator.transport.allow(bob.transport.me)
        second = await waiting
        await bob.transport.dial(ann.transport.me)
        refused = asyncio.create_task(outcome(liar.transport.join("4TKG9P", Credentials("A" * 21 + "w"), HELLO)))
        await until(lambda: creator.waiting)
        creator.transport.deny(liar.transport.me)
        await refused
        for device in (liar, bob, ann, creator):
            await device.transport.close()
    assert overheard.holding(gate.key) == []
    assert overheard.holding("A" * 21 + "w") == []
    for issued in (gate.mesh_key, joined.pass_text, second.pass_text):
        told = overheard.holding(issued)
        assert told, "the hook does not hear"
        assert all(_is_admit(data) for data in told)
    assert overheard.signals
