"""The same rooms over real connections on 127.0.0.1."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from app.prompt.chat import UserTurn
from app.room import intents as it
from app.room.invite import parse_invite
from app.room.meta import OURS, Meta
from app.room.outside import RoomPorts, room_transport
from app.room.room import Room
from app.room.signal_servers import SignalServer
from app.room.state import Phase
from app.room.transport import Transport, TransportConfig
from tests.room.loopback import room_server, use_loopback
from tests.room.test_rooms import MOST, prompt, words
from tests.room.toy import TABLE, ToyCompute, greedy, one_device, open_language
from tests.room.world import EXACT


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


def device(server: SignalServer) -> Room:
    room = Room(
        RoomPorts(
            new_transport=lambda _signal, _identity: room_transport(Transport(TransportConfig((server,), stripes=2))),
            compute=ToyCompute(),
            table=TABLE,
            open_language=open_language,
            choose=greedy,
            meta=Meta(ua="Device", webgpu=True, dspec=1, max_bind_mb=2048, native=OURS, fixed_host=True),
        ),
        EXACT,
    )
    room.start()
    return room


@asynccontextmanager
async def rooms(count: int) -> AsyncIterator[list[Room]]:
    async with room_server() as server:
        made = [device(server) for _ in range(count)]
        try:
            yield made
        finally:
            for room in reversed(made):
                await room.close()


async def until(condition: Callable[[], bool], limit: float = 30.0) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit, "did not happen"
        await asyncio.sleep(0.02)


async def test_three_devices_answer_as_one_and_go_on_after_a_loss() -> None:
    async with rooms(3) as (otter, heron, finch):
        otter.handle(it.OpenRoom("otter", 1))
        await until(lambda: otter.state.invite is not None)
        assert otter.state.invite is not None
        assert len(parse_invite(otter.state.invite.link).fingerprint) == 64
        for name, gb, room in (("heron", 1, heron), ("finch", 2, finch)):
            room.handle(it.JoinRoom(otter.state.invite.link, name, gb))
            await until(lambda room=room: room.state.my_device is not None)
        finch.handle(it.Start())
        await until(lambda: all(room.state.phase is Phase.ONLINE for room in (otter, heron, finch)))
        heron.handle(it.Ask("Over the wire?"))
        await until(lambda: heron.state.phase is Phase.ONLINE and bool(heron.state.transcript))
        cuts = sorted(d.layers[1] for d in otter.state.devices if d.layers)[:-1]
        assert len(cuts) == 2
        answer = heron.state.transcript[-1].answer
        assert answer == words(one_device(prompt(UserTurn("Over the wire?")), MOST, cuts))
        finch.handle(it.SetPledge(3))
        await until(lambda: otter.state.pooled_gb == 5)
        heron.handle(it.Leave())
        await until(lambda: finch.state.phase is Phase.ONLINE and len(finch.state.devices) == 2)
        finch.handle(it.Ask("Still there?"))
        await until(lambda: len(finch.state.transcript) == 2 and finch.state.live is None)
        assert len(finch.state.transcript[-1].answer) == MOST


async def test_a_device_without_a_key_waits_for_allow_with_equal_digits() -> None:
    async with rooms(2) as (otter, heron):
        otter.handle(it.OpenRoom("otter", 4))
        await until(lambda: otter.state.invite is not None)
        heron.handle(it.JoinRoom(otter.state.code, "heron", 2))
        await until(lambda: bool(otter.state.waiting) and heron.state.phase is Phase.LOBBY)
        request = otter.state.waiting[0]
        assert request.name == "heron"
        assert request.digits == heron.state.digits != ""
        otter.handle(it.Allow(request.id))
        await until(lambda: heron.state.phase is Phase.ROOM and len(heron.state.devices) == 2)
        otter.handle(it.Leave())
        await until(lambda: heron.state.phase is Phase.OVER)
