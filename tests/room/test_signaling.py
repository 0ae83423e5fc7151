"""The room server and its client: ids, relaying, expiry, limits, fall-back and coming back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from app.core.clock import VirtualClock
from app.core.errors import LinkError
from app.room.peerjs import IdTaken, SignalDown, SignalMessage, SignalRefused, read_signal, register
from app.room.server_news import ServerNews
from app.room.signal_server import MAX_WAITING_FOR_ONE, SignalHub
from app.room.signal_servers import CLOUD, SignalServer, parse_server, server_list
from app.room.signaling import Signaling, reconnect_delay
from tests.room.loopback import outcome, room_server, until


@asynccontextmanager
async def presence(*servers: SignalServer, peer_id: str = "") -> AsyncIterator[tuple[Signaling, list[SignalMessage]]]:
    signaling, heard = Signaling(servers, sleep=_no_wait), []
    signaling.on_message = heard.append
    try:
        await signaling.open(peer_id)
        yield signaling, heard
    finally:
        await signaling.close()


async def _no_wait(_seconds: float) -> None:
    await asyncio.sleep(0.01)


async def test_messages_are_relayed_with_their_source() -> None:
    async with (
        room_server() as server,
        presence(server, peer_id="ann") as (ann, _),
        presence(server) as (bob, heard),
    ):
        ann.send("OFFER", bob.peer_id, {"connectionId": "dc_1"})
        await until(lambda: heard)
        assert heard == [SignalMessage("OFFER", "ann", {"connectionId": "dc_1"})]


async def test_offer_waits_a_while_for_its_peer() -> None:
    async with room_server(expire_s=5) as server, presence(server, peer_id="ann") as (ann, _):
        ann.send("OFFER", "late", {"connectionId": "dc_1"})
        await asyncio.sleep(0.05)
        async with presence(server, peer_id="late") as (_, heard):
            await until(lambda: heard)
            assert heard[0].source == "ann"


async def test_unknown_peer_expires() -> None:
    async with room_server(expire_s=0.05) as server, presence(server) as (ann, heard):
        ann.send("OFFER", "nobody", {})
        await until(lambda: heard)
        assert (heard[0].kind, heard[0].source) == ("EXPIRE", "nobody")


async def test_id_is_taken_by_another_device_only() -> None:
    async with room_server() as server, aiohttp.ClientSession() as http:
        first = await register(http, server, "room", "token-1")
        with pytest.raises(IdTaken):
            await register(http, server, "room", "token-2")
        again = await register(http, server, "room", "token-1")
        for socket in (first, again):
            await socket.close()


@pytest.mark.parametrize("peer_id", ["-x", "a" * 65, "../x", "a\nb"])
async def test_bad_ids_are_refused(peer_id: str) -> None:
    async with room_server() as server, aiohttp.ClientSession() as http:
        with pytest.raises(SignalRefused):
            await register(http, server, peer_id, "token")


async def test_wrong_key_is_refused() -> None:
    async with room_server() as server, aiohttp.ClientSession() as http:
        wrong = SignalServer(server.host, server.port, False, server.path, key="other")
        with pytest.raises(SignalRefused):
            await register(http, wrong, "ann", "token")
        with pytest.raises(SignalDown):
            await register(http, wrong, "", "token")


async def test_oversized_message_ends_only_its_sender() -> None:
    async with (
        room_server() as server,
        presence(server, peer_id="ann") as (ann, _),
        presence(server) as (bob, heard),
    ):
        ann.send("OFFER", bob.peer_id, {"sdp": "x" * 100_000})
        await asyncio.sleep(0.1)
        assert heard == []
        await until(lambda: ann.connected)
        ann.send("OFFER", bob.peer_id, {"small": 1})
        await until(lambda: heard)


async def test_waiting_messages_are_limited() -> None:
    hub = SignalHub(expire_s=60)
    for number in range(MAX_WAITING_FOR_ONE + 5):
        hub.relay("ann", {"type": "OFFER", "dst": "nobody", "payload": {"n": number}})
    assert len(hub._waiting["nobody"]) == MAX_WAITING_FOR_ONE
    await hub.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "[" * 60_000,
        '{"a":' * 9_000,
        '{"type": 5}',
        '{"type": "OFFER", "dst": 7}',
        '{"type": "NEWS", "dst": "x"}',
    ],
)
async def test_nonsense_is_ignored(text: str) -> None:
    async with room_server() as server, aiohttp.ClientSession() as http:
        url = f"{server.socket_base}peerjs"
        async with http.ws_connect(url, params={"key": "peerjs", "id": "ann", "token": "t"}) as socket:
            assert (await socket.receive_json())["type"] == "OPEN"
            await socket.send_str(text)
            await socket.send_json({"type": "OFFER", "dst": "ann", "payload": {"n": 1}})
            assert (await socket.receive_json())["payload"] == {"n": 1}


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 30_000, "9" * 9_000, '{"type": null}', "\ud800"])
def test_nonsense_of_a_server_is_ignored(text: str) -> None:
    assert read_signal(aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, text, None)) is None


@pytest.mark.parametrize("source", ["\ud800", "a" * 129, "", 5])
def test_a_peer_id_that_no_proof_can_name_is_none(source: object) -> None:
    told = json.dumps({"type": "OFFER", "src": source})
    message = read_signal(aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, told, None))
    assert message is not None
    assert message.source == ""


async def test_a_dead_server_is_passed_over() -> None:
    dead = SignalServer("127.0.0.1", 1, secure=False)
    async with room_server() as server, presence(dead, server) as (signaling, _):
        assert signaling.server == server


async def test_no_server_at_all() -> None:
    signaling = Signaling([SignalServer("127.0.0.1", 1, secure=False)])
    error = await outcome(signaling.open())
    assert isinstance(error, LinkError)
    assert "127.0.0.1:1" in error.what
    await signaling.close()


async def test_comes_back_under_the_same_id() -> None:
    async with room_server() as server, presence(server, peer_id="ann") as (ann, heard):
        told: list[bool] = []
        ann.on_connected = told.append
        assert ann._socket is not None
        await ann._socket._socket.close()
        await until(lambda: told == [False, True])
        ann.send("OFFER", "ann", {"n": 1})
        await until(lambda: heard)


async def test_it_is_asked_again_after_each_delay_until_the_server_is_back() -> None:
    delays: list[float] = []

    async def waited(seconds: float) -> None:
        delays.append(seconds)
        await asyncio.sleep(0)

    async with room_server() as server:
        signaling = Signaling([server], sleep=waited)
        await signaling.open("ann")
        signaling.server = SignalServer("127.0.0.1", 1, secure=False)
        assert signaling._socket is not None
        await signaling._socket._socket.close()
        await until(lambda: len(delays) >= 7)
        assert not signaling.connected
        signaling.server = server
        await until(lambda: signaling.connected)
        assert delays[:7] == [2, 4, 8, 16, 30, 30, 30]
        assert signaling.peer_id == "ann"
        await signaling.close()


async def test_a_creator_that_restarts_gets_its_code_back_when_the_server_lets_go() -> None:
    waits: list[float] = []
    async with room_server() as server:
        before, after = Signaling([server]), Signaling([server])

        async def waited(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                await before.close()
                await asyncio.sleep(0.1)

        after._sleep = waited
        await before.open("room")
        assert isinstance(await outcome(after.open("room")), IdTaken)
        assert await after.open("room", again=True) == "room"
        assert waits == [3, 3, 3]
        await after.close()


async def test_a_code_that_stays_taken_is_given_up() -> None:
    waits: list[float] = []

    async def waited(seconds: float) -> None:
        waits.append(seconds)

    async with room_server() as server, presence(server, peer_id="room"):
        other = Signaling([server], sleep=waited)
        assert isinstance(await outcome(other.open("room", again=True)), IdTaken)
        assert waits == [3.0] * 30
        await other.close()


def test_a_server_that_comes_and_goes_is_told_of_once_in_half_a_minute() -> None:
    clock = VirtualClock()
    news, told = ServerNews(clock), list[tuple[float, bool]]()

    def note(said: bool | None) -> None:
        if said is not None:
            told.append((clock.now(), said))

    for second in range(100):
        clock.advance(1)
        note(news.changed(second % 4 == 3) if second < 48 else news.due())
    assert told == [(1, False), (4, True), (31, False), (32, True)]
    note(news.changed(False))
    note(news.changed(False))
    assert told[-1] == (100, False)
    assert len(told) == 5
    note(news.changed(True))
    note(news.changed(False))
    assert told[-1] == (100, True)
    clock.advance(30)
    note(news.due())
    assert told[-1] == (130, False)


def test_reconnect_delays() -> None:
    assert [reconnect_delay(tries) for tries in (0, 1, 2, 3, 4, 5, 5000)] == [2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("spec", "server"),
    [
        ("cloud", CLOUD),
        ("0.peerjs.com", CLOUD),
        ("host", SignalServer("host", 443, True)),
        ("host:9000", SignalServer("host", 9000, False)),
        ("host:443/x", SignalServer("host", 443, True, "/x/")),
        ("host:9000/pooled/a/", SignalServer("host", 9000, False, "/pooled/a/")),
        ("host:9000//a///b//", SignalServer("host", 9000, False, "/a/b/")),
        ("ws://10.0.0.2", SignalServer("10.0.0.2", 80, False)),
        ("wss://host:9000/p", SignalServer("host", 9000, True, "/p/")),
        ("https://host", SignalServer("host", 443, True)),
        ("http://[fe80::1]:7000", SignalServer("fe80::1", 7000, False)),
        ("", None),
        ("ftp://host", None),
        ("host:port", None),
        ("http://[", None),
        ("a b", None),
    ],
)
def test_parse_server(spec: str, server: SignalServer | None) -> None:
    assert parse_server(spec) == server


def test_label_reads_back() -> None:
    for spec in ("cloud", "host:9000/pooled", "wss://host:9000/p", "http://[fe80::1]:7000"):
        server = parse_server(spec)
        assert server is not None
        assert parse_server(server.label) == server


def test_order_of_servers() -> None:
    own = SignalServer("10.0.0.2", 7420, False)
    assert server_list(configured=["a", "b", "a"], own=own) == [
        parse_server("a"),
        parse_server("b"),
        own,
        CLOUD,
    ]
    assert server_list("x:1, ,ftp://no,x:1", ["a"], own) == [parse_server("x:1")]
    assert server_list("ftp://no", [], own, cloud=False) == [own]
