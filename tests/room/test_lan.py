"""The listener on the local network: what it serves, what it leaves out, and the links that lead to it."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from app.room import lan as module
from app.room.invite import Invite, parse_invite
from app.room.lan import Lan
from app.room.lan_address import LOOPBACK, Interface, best_address, lan_address
from app.room.signal_servers import CLOUD, SignalServer, parse_server, server_list
from tests.room.loopback import Device, until

CODE = "4TKG9P"
KEY = "AbCdEfGhIjKlMnOpQrStUv"
ADDRESS = "192.168.1.20"


@asynccontextmanager
async def listening(address: str = ADDRESS) -> AsyncGenerator[Lan]:
    lan = Lan(first_port=0, address=lambda: address)
    await lan.open()
    try:
        yield lan
    finally:
        await lan.close()


@asynccontextmanager
async def got(lan: Lan, path: str, host: str = LOOPBACK) -> AsyncGenerator[aiohttp.ClientResponse]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{lan.port}{path}") as answer:
        yield answer


async def test_it_is_off_until_a_room_opens_and_after_it_ends() -> None:
    lan = Lan(first_port=0)
    assert (lan.port, lan.own()) == (0, None)
    await lan.open()
    own, port = lan.own(), lan.port
    assert own == SignalServer(LOOPBACK, port, secure=False)
    await lan.open()
    assert lan.port == port
    await lan.close()
    await lan.close()
    assert lan.own() is None
    with socket.socket() as probe:
        assert probe.connect_ex((LOOPBACK, port)) != 0


async def test_the_page_shows_the_code_and_asks_nobody_outside() -> None:
    async with listening() as lan, got(lan, f"/r/{CODE}?signal=x") as page:
        text = await page.text()
        assert page.status == 200
        assert "4TK-G9P" in text
        assert f'href="pooled://r/{CODE}"' in text
        assert "{{" not in text
        assert not re.search(r"https?://|[\"']//", text)
        for part in re.findall(r'(?:src|href)="(/[^"]+)"', text):
            async with got(lan, part) as answer:
                assert answer.status == 200
                assert not re.search(r"https?://|url\(|@import|fetch\(", await answer.text())


@pytest.mark.parametrize("path", [f"/r/{CODE}", "/page/room.js", "/", "/peerjs/id", "/page/nothing"])
async def test_every_answer_has_strict_headers(path: str) -> None:
    async with listening() as lan, got(lan, path) as answer:
        rules = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in rules
        assert "unsafe" not in rules
        assert "*" not in rules
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/r/4TKG9", "/r/IIIIII", "/r/%3Cscript%3E", "/r/", "/page/..%2Froom.html", "/page/room.html", "/models"]
)
async def test_nothing_else_is_there(path: str) -> None:
    async with listening() as lan, got(lan, path) as answer:
        assert answer.status == 404


async def test_the_page_is_the_same_for_a_room_that_is_not_open() -> None:
    async with listening() as lan, got(lan, f"/r/{CODE}") as one, got(lan, "/r/ZZZZZZ") as other:
        assert (await one.text()).replace(CODE, "ZZZZZZ").replace("4TK-G9P", "ZZZ-ZZZ") == await other.text()


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
async def test_it_listens_on_both_versions_of_the_internet_protocol() -> None:
    async with listening() as lan, got(lan, f"/r/{CODE}", "[::1]") as answer:
        assert answer.status == 200


async def test_a_taken_port_leads_to_the_next() -> None:
    async with listening() as first:
        second = Lan(first_port=first.port)
        await second.open()
        assert first.port < second.port < first.port + module.PORTS
        await second.close()


async def test_without_any_port_the_room_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(module, "_bound", refused)
    lan = Lan()
    await lan.open()
    assert lan.own() is None
    assert lan.link_of(Invite(CODE, KEY)) == f"pooled://r/{CODE}#k={KEY}"


async def test_devices_meet_over_its_room_server() -> None:
    async with listening() as lan:
        own = lan.own()
        assert own
        device = Device([own])
        signaling = device.transport._signaling  # pyright: ignore[reportPrivateUsage]
        assert len(await signaling.open()) == 36
        await until(lambda: signaling.connected)
        await device.transport.close()


async def test_a_link_names_the_room_server_exactly_when_it_is_not_the_public_one() -> None:
    async with listening() as lan:
        base = f"http://{ADDRESS}:{lan.port}/r/{CODE}"
        lan.registered = CLOUD
        assert lan.link_of(Invite(CODE, KEY)) == f"{base}#k={KEY}"
        lan.registered = lan.own()
        invite = parse_invite(lan.link_of(Invite(CODE, KEY, fingerprint="ab" * 32)))
        assert invite == Invite(CODE, KEY, f"http://{ADDRESS}:{lan.port}", f"{ADDRESS}:{lan.port}", "ab" * 32)
        assert server_list(invite.signal) == [SignalServer(ADDRESS, lan.port, secure=False)]
        lan.registered = SignalServer("rooms.example", 9000, secure=False, path="/p/")
        invite = parse_invite(lan.link_of(Invite(CODE, KEY)))
        assert parse_server(invite.signal) == lan.registered


async def test_a_link_with_an_ipv6_address_can_be_read_again() -> None:
    async with listening("fd00::2") as lan:
        lan.registered = lan.own()
        invite = parse_invite(lan.link_of(Invite(CODE, KEY)))
        assert invite.origin == f"http://[fd00::2]:{lan.port}"
        assert server_list(invite.signal) == [SignalServer("fd00::2", lan.port, secure=False)]


HOME = Interface("wlan0", "192.168.1.20")
TUNNEL = Interface("tun0", "10.8.0.3")
BRIDGE = Interface("docker0", "172.17.0.1")
CABLE = Interface("eth0", "10.0.0.7")
SIX = Interface("eth0", "2001:db8::7")


@pytest.mark.parametrize(
    ("interfaces", "routed", "best"),
    [
        ([BRIDGE, TUNNEL, HOME], TUNNEL.address, HOME),
        ([CABLE, HOME], HOME.address, HOME),
        ([HOME, CABLE], CABLE.address, CABLE),
        ([SIX, CABLE], "", CABLE),
        ([SIX], "", SIX),
        ([BRIDGE], "", BRIDGE),
    ],
)
def test_the_best_address_is_one_that_friends_can_reach(
    interfaces: list[Interface], routed: str, best: Interface
) -> None:
    assert best_address(interfaces, routed) == best.address


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1", "169.254.3.4", "0.0.0.0", "224.0.0.1", "none"])
def test_addresses_nobody_else_can_reach_are_left_out(address: str) -> None:
    assert best_address([replace(HOME, address=address)]) == LOOPBACK


def test_this_computer_has_an_address() -> None:
    assert lan_address().count(".") == 3 or ":" in lan_address()
