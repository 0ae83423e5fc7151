"""Finding a room by its code on the local network: announcements that say nothing to strangers."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from zeroconf import ServiceStateChange
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from app.room import nearby as module
from app.room.nearby import MOST_ADVERTS, SERVICE, Nearby, hashed, read_advert
from app.room.signal_servers import SignalServer

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
    await creator.announce(CODE, "127.0.0.1", 47611)
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
    made = [module._info(CODE, "192.168.1.20", 1) for _ in range(2)]  # pyright: ignore[reportPrivateUsage]
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
    assert len(advert.servers) == module.MOST_ADDRESSES


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

    async def heard(_self: object, _name: str) -> module.Advert | None:
        return advert

    async def close() -> None: ...

    monkeypatch.setattr(module, "hashed", count)
    monkeypatch.setattr(module, "AsyncServiceBrowser", Browser)
    monkeypatch.setattr(module._Search, "_advert", heard)  # pyright: ignore[reportPrivateUsage]
    zeroconf: Any = SimpleNamespace(zeroconf=None, async_close=close)
    assert await Nearby(lambda: zeroconf).find(CODE, seconds=0.3) == ()
    assert hashes == MOST_ADVERTS


async def test_without_a_network_nothing_is_found_and_nothing_fails() -> None:
    def refused() -> AsyncZeroconf:
        raise OSError(19, "No such device")

    nearby = Nearby(refused)
    await nearby.announce(CODE, "192.168.1.20", 1)
    assert await asyncio.wait_for(nearby.find(CODE), 1) == ()
    await nearby.close()


async def test_a_room_only_this_computer_can_reach_is_not_announced() -> None:
    nearby = Nearby()
    await nearby.announce(CODE, "127.0.0.1", 1)
    await nearby.close()
    assert await nearby.find(CODE, seconds=0.3) == ()
