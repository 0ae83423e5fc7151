"""Finding a room by its code on the local network: announcements that say nothing to strangers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from zeroconf import ServiceStateChange
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from app.room import advert as advert_module
from app.room import nearby as module
from app.room.advert import MOST_ADDRESSES, SERVICE, Advert, Announcement, hashed, read_advert, service_of
from app.room.near import Near, near_of, new_alias, parse_near
from app.room.nearby import MOST_ADVERTS, Nearby, NearbyRoom
from app.room.signal_servers import SignalServer
from tests.room.loopback import until

ALIAS = f"near-{7:032x}"
CODE = "4TKG9P"
SALT = bytes(range(16))


def info(addresses: list[str] | None = None, port: int = 47600, **changed: Any) -> AsyncServiceInfo:
    said = {"s": SALT.hex(), "h": hashed(CODE, SALT).hex()} | changed
    properties = {name: value for name, value in said.items() if value is not None}
    chosen = ["192.168.1.20"] if addresses is None else addresses
    return AsyncServiceInfo(SERVICE, f"x.{SERVICE}", port=port, properties=properties, parsed_addresses=chosen)


def on_loopback() -> AsyncZeroconf:
    try:
        return AsyncZeroconf(interfaces=["127.0.0.1"])
    except OSError as error:
        pytest.skip(f"no multicast on the loopback interface here: {error}")


async def test_a_room_is_found_by_its_code_and_by_no_other() -> None:
    creator, joiner = Nearby(on_loopback), Nearby(on_loopback)
    await creator.announce(Announcement(CODE), ("127.0.0.1",), 47611)
    try:
        assert await joiner.find("ZZZZZZ", seconds=0.6) == ()
        assert await joiner.find(CODE) == (SignalServer("127.0.0.1", 47611, secure=False),)
    finally:
        await creator.close()
    assert await joiner.find(CODE, seconds=0.5) == ()


def test_an_announcement_answers_to_its_code_only() -> None:
    advert = read_advert(info())
    assert advert
    assert advert.meant_by(CODE)
    assert not advert.meant_by("4TKG9Q")
    assert advert.servers == (SignalServer("192.168.1.20", 47600, secure=False),)


def test_the_code_and_the_computers_name_are_not_in_an_announcement() -> None:
    room = Announcement(CODE, "otter", new_alias())
    made = [service_of(room, ("192.168.1.20",), 1) for _ in range(2)]
    said = [f"{each.text!r} {each.name} {each.server}" for each in made]
    assert said[0] != said[1]
    assert all(CODE not in text.upper() and socket.gethostname() not in text for text in said)


@pytest.mark.parametrize(
    "odd",
    [
        info(s="zz"),
        info(s=None),
        info(h=None),
        info(s="00" * 15),
        info(s="00" * 120),
        info(h="00" * 31),
        info(h=b"\xff\xfe"),
        info(port=0),
        info(addresses=[]),
        info(addresses=["8.8.8.8"]),
        info(addresses=["0.0.0.0"]),
        info(addresses=["169.254.1.1"]),
    ],
)
def test_a_strange_announcement_is_none(odd: AsyncServiceInfo) -> None:
    assert read_advert(odd) is None


def test_few_addresses_of_an_announcement_are_tried() -> None:
    advert = read_advert(info(addresses=[f"192.168.1.{i}" for i in range(1, 30)]))
    assert advert
    assert len(advert.servers) == MOST_ADDRESSES


async def test_a_flood_of_announcements_costs_a_bounded_number_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes, advert = 0, read_advert(info())

    def count(code: str, salt: bytes) -> bytes:
        nonlocal hashes
        hashes += 1
        return bytes(32)

    class Browser:
        def __init__(self, zeroconf: Any, _kind: str, handlers: Any) -> None:
            for number in range(1000):
                handlers[0](zeroconf, SERVICE, f"{number}.{SERVICE}", ServiceStateChange.Added)

        async def async_cancel(self) -> None: ...

    async def heard(_zeroconf: object, _name: str) -> Advert | None:
        return advert

    async def close() -> None: ...

    monkeypatch.setattr(advert_module, "hashed", count)
    monkeypatch.setattr(module, "AsyncServiceBrowser", Browser)
    monkeypatch.setattr(module, "_ask", heard)
    zeroconf: Any = SimpleNamespace(zeroconf=None, async_close=close)
    assert await Nearby(lambda: zeroconf).find(CODE, seconds=0.3) == ()
    assert hashes == MOST_ADVERTS


async def test_without_a_network_nothing_is_found_and_nothing_fails() -> None:
    def refused() -> AsyncZeroconf:
        raise OSError(19, "No such device")

    nearby = Nearby(refused)
    await nearby.announce(Announcement(CODE), ("192.168.1.20",), 1)
    assert await asyncio.wait_for(nearby.find(CODE), 1) == ()
    await nearby.close()


async def test_a_room_only_this_computer_can_reach_is_not_announced() -> None:
    nearby = Nearby()
    await nearby.announce(Announcement(CODE), ("127.0.0.1",), 1)
    await nearby.close()
    assert await nearby.find(CODE, seconds=0.3) == ()


@pytest.fixture
async def answering() -> AsyncIterator[int]:
    """A port that takes connections."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_rooms_are_listed_while_they_are_announced(answering: int) -> None:
    creator, other, plain, watcher = (Nearby(on_loopback) for _ in range(4))
    alias, heard = new_alias(), list[tuple[NearbyRoom, ...]]()
    await creator.announce(Announcement(CODE, "Otter's Mac <b>", alias), ("127.0.0.1",), answering)
    watcher.on_rooms = lambda: heard.append(watcher.rooms())
    await watcher.watch()
    await watcher.watch()
    try:
        await until(lambda: any(room.reachable for room in watcher.rooms()))
        (room,) = watcher.rooms()
        assert room.name == "Otters Mac b"
        assert parse_near(room.where) == near_of(alias, (SignalServer("127.0.0.1", answering, secure=False),))
        assert CODE not in repr(room)
        await plain.announce(Announcement("ZZZZZZ"), ("127.0.0.1",), answering)
        await other.announce(Announcement("ABCDEF", "heron", new_alias()), ("127.0.0.1",), 1)
        await until(lambda: len(watcher.rooms()) == 2)
        assert [(each.name, each.reachable) for each in watcher.rooms()] == [("Otters Mac b", True), ("heron", False)]
        await creator.close()
        await until(lambda: [each.name for each in watcher.rooms()] == ["heron"])
        assert heard[-1] == watcher.rooms()
    finally:
        for each in (creator, other, plain):
            await each.close()
        await watcher.unwatch()
    assert watcher.rooms() == ()


async def test_a_room_that_begins_to_answer_is_shown_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_PERIOD_S", 0.05)
    creator, watcher = Nearby(on_loopback), Nearby(on_loopback)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    await creator.announce(Announcement(CODE, "otter", new_alias()), ("127.0.0.1",), port)
    await watcher.watch()
    await until(lambda: bool(watcher.rooms()))
    assert not watcher.rooms()[0].reachable
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)
    await until(lambda: watcher.rooms()[0].reachable)
    server.close()
    await watcher.unwatch()
    await creator.close()


async def test_a_flood_of_announcements_fills_a_bounded_list(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    async def ask(_zeroconf: object, name: str) -> Advert | None:
        asked.append(name)
        await asyncio.sleep(0.01)
        return read_advert(info(i=new_alias(), n=name))

    async def silent(_server: SignalServer) -> bool:
        return False

    monkeypatch.setattr(module, "_ask", ask)
    monkeypatch.setattr(module, "_answers", silent)
    zeroconf: Any = SimpleNamespace(zeroconf=None)
    watch = module._Watch(zeroconf, lambda: None)
    for number in range(1000):
        for change in (ServiceStateChange.Added, ServiceStateChange.Updated):
            watch._heard(zeroconf, SERVICE, f"{number}.{SERVICE}", change)
    await until(lambda: len(watch.rooms()) == MOST_ADVERTS)
    assert len(asked) == MOST_ADVERTS
    await watch._tasks.close()


async def test_without_a_network_there_is_no_list_and_nothing_fails() -> None:
    def refused() -> AsyncZeroconf:
        raise OSError(19, "No such device")

    nearby = Nearby(refused)
    await nearby.watch()
    assert nearby.rooms() == ()
    await nearby.unwatch()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4TKG9P",
        "pooled://r/4TKG9P",
        "pooled://near/near-zz?signal=10.0.0.2:1",
        f"pooled://near/{ALIAS}",
        f"pooled://near/{ALIAS}?signal=ftp://x",
        f"https://near/{ALIAS}?signal=10.0.0.2:1",
        "pooled://[",
    ],
)
def test_what_leads_to_no_room_nearby(text: str) -> None:
    assert parse_near(text) is None


def test_where_a_room_is_reads_back() -> None:
    servers = (SignalServer("192.168.1.20", 47600, secure=False), SignalServer("fd00::2", 47600, secure=False))
    near = Near(new_alias(), servers)
    assert parse_near(near.link()) == near


def test_an_announcement_without_a_name_or_alias_is_not_listed() -> None:
    for said in ({}, {"n": "otter"}, {"i": new_alias()}, {"n": "otter", "i": "near-x"}, {"n": "<>", "i": new_alias()}):
        advert = read_advert(info(**said))
        assert advert
        assert advert.near is None


def test_a_long_name_fits_an_announcement() -> None:
    told = read_advert(service_of(Announcement(CODE, "\N{OTTER}" * 200, new_alias()), ("192.168.1.20",), 1))
    assert told
    assert 10 <= len(told.name) <= 40
