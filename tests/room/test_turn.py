"""Connections over a real relay: UDP, TCP, TLS, relay only, every kind of credential, and what goes wrong."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import LinkError
from app.room.frame import Frame, FrameKind
from app.room.gate import Credentials, Gate
from app.room.ice import IceConfig, Relay
from app.room.relays import (
    LIFE_S,
    CredentialsUrl,
    Lender,
    SharedSecret,
    lease_message,
    minted,
    read_lease_message,
)
from app.room.rtc import RtcConnection
from tests.room.coturn import Coturn, coturn, needs_coturn
from tests.room.loopback import Device, outcome, room_server, until, use_loopback
from tests.room.test_relays import giving

pytestmark = needs_coturn

CODE = "4TKG9P"
CREATOR = f"pooled-room-{CODE}"
HELLO = {"name": "otter", "meta": {}}
USER, PASSWORD = "otter", "holt"
NOW = float(int(time.time()))
FIXED = f"--user={USER}:{PASSWORD}"


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


def trusting(monkeypatch: pytest.MonkeyPatch, relay: Coturn) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(relay.authority))


def hiding(url: str, password: str = PASSWORD) -> IceConfig:
    return IceConfig(stun=(), relays=(Relay(url, USER, password),), relay_only=True)


@asynccontextmanager
async def joined(ice: IceConfig, theirs: IceConfig | None = None, stripes: int = 1) -> AsyncIterator[tuple[Any, Any]]:
    """The link of a creator and the link of a member, to each other."""
    async with room_server() as server:
        gate = Gate()
        creator, member = Device([server], stripes, ice), Device([server], stripes, theirs or ice)
        await creator.transport.open_room(CODE, gate, HELLO)
        try:
            await member.transport.join(CODE, Credentials(key=gate.key), HELLO)
            me = member.transport.me
            await until(lambda: me in creator.transport.links)
            yield creator.link(me), member.link(CREATOR)
        finally:
            await member.transport.close()
            await creator.transport.close()


async def carries(one: Any, other: Any) -> None:
    """Messages and frames, both ways."""
    for near, far in ((one, other), (other, one)):
        messages, frames = list[Any](), list[Frame]()
        far.on_message, far.on_frame = messages.append, frames.append
        near.send({"t": "hello there"})
        near.send_frame(Frame(FrameKind.HIDDEN, 1, 1, b"\1\2" * 5_000))
        await until(lambda messages=messages, frames=frames: messages and frames)
        assert frames[0].payload == b"\1\2" * 5_000


@pytest.mark.parametrize("way", ["udp", "tcp", "tls"])
async def test_everything_goes_over_the_relay(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with coturn(tmp_path, FIXED) as relay:
        trusting(monkeypatch, relay)
        async with joined(hiding(getattr(relay, way)), stripes=2) as (one, other):
            await until(lambda: one.stripes == other.stripes == 2)
            assert (one.path, other.path) == ("relay", "relay")
            for line in (*one._lines, *other._lines):
                assert line.connection.path == "relay"
                assert not line.connection.tried.mine.host
                assert not line.connection.tried.mine.outside
            await carries(one, other)


async def test_only_relay_candidates_are_offered_and_no_address_is_shown(tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED) as relay:
        connection = RtcConnection(hiding(relay.udp), "dc_test")
        offer = await connection.make_offer()
        candidates = [line for line in offer.splitlines() if line.startswith("a=candidate:")]
        assert len(candidates) == 1
        assert " typ relay " in candidates[0]
        assert "raddr 0.0.0.0 rport 9" in candidates[0]
        connection.close("done")
        await connection.closed()


async def test_one_hidden_end_is_enough_for_both_to_see_a_relay(tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED) as relay, joined(hiding(relay.tcp), IceConfig(stun=())) as (one, other):
        assert (one.path, other.path) == ("relay", "relay")
        await carries(one, other)


async def test_a_direct_path_is_taken_where_there_is_one(tmp_path: Path) -> None:
    ice = IceConfig(stun=())
    async with coturn(tmp_path, FIXED) as relay:
        with_relay = IceConfig(stun=(), relays=(Relay(relay.udp, USER, PASSWORD),))
        async with joined(with_relay, ice) as (one, other):
            assert (one.path, other.path) == ("direct", "direct")


async def test_a_second_relay_stands_in_for_a_dead_first_one(tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED) as relay:
        dead = Relay("turn:127.0.0.1:1?transport=tcp", USER, PASSWORD)
        ice = IceConfig(stun=(), relays=(dead, Relay(relay.tcp, USER, PASSWORD)), relay_only=True)
        async with joined(ice) as (one, other):
            assert (one.path, other.path) == ("relay", "relay")


@pytest.mark.parametrize("way", ["udp", "tcp"])
async def test_wrong_credentials_are_said_and_name_the_relay(way: str, tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED) as relay, room_server() as server:
        url = getattr(relay, way)
        creator = Device([server])
        await creator.transport.open_room(CODE, Gate(), HELLO)
        member = Device([server], ice=hiding(url, password="wrong"))
        error = await outcome(member.transport.join(CODE, Credentials(), HELLO))
        assert isinstance(error, LinkError)
        assert url in error.what
        assert "refuses the user name or password" in error.what
        assert error.remedy
        await member.transport.close()
        await creator.transport.close()


async def test_a_certificate_nobody_vouches_for_is_said(tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED) as relay:
        connection = RtcConnection(hiding(relay.tls), "dc_test")
        await connection.make_offer()
        (error,) = connection.tried.relay_errors
        assert relay.tls in error.what
        assert "does not trust" in error.what
        connection.close("done")
        await connection.closed()


async def test_tls_where_none_is_spoken_is_said(tmp_path: Path) -> None:
    async with room_server() as server:
        connection = RtcConnection(hiding(f"turns:127.0.0.1:{server.port}"), "dc_test")
        await connection.make_offer()
        (error,) = connection.tried.relay_errors
        assert "does not speak TLS" in error.what
        connection.close("done")
        await connection.closed()


async def _lent(lender: Lender) -> None:
    """A creator that hides, and a member with nothing of its own that is lent the creator's relay."""
    ice = IceConfig(stun=(), relay_only=True)
    async with room_server() as server:
        gate = Gate()
        creator, member, other = (Device([server], ice=ice, lender=lend) for lend in (lender, None, None))
        await creator.transport.open_room(CODE, gate, HELLO)
        for each in (member, other):
            await each.transport.join(CODE, Credentials(key=gate.key), HELLO)
            assert each.link(CREATOR).path == "relay"
            lease = creator.transport.relays.lease
            assert lease
            each.transport.relays.borrow(read_lease_message(lease_message(lease)))
        link = await member.transport.dial(other.transport.me)
        assert link.path == "relay"
        assert not link._main.connection.tried.mine.host
        for each in (other, member, creator):
            await each.transport.close()


async def test_credentials_made_from_a_shared_secret_open_the_relay_to_members_too(tmp_path: Path) -> None:
    async with coturn(tmp_path, "--use-auth-secret", "--static-auth-secret=north") as relay:
        await _lent(SharedSecret(relay.udp, b"north", "otter"))


async def test_no_password_or_secret_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with coturn(tmp_path, "--use-auth-secret", "--static-auth-secret=north-of-north") as relay:
        lender = SharedSecret(relay.udp, b"north-of-north", now=lambda: NOW)
        await _lent(lender)
    logged = caplog.text
    assert relay.udp.removeprefix("turn:").partition(":")[0] in logged
    assert "north-of-north" not in logged
    assert minted(relay.udp, b"north-of-north", NOW + LIFE_S).password not in logged


async def test_a_wrong_secret_is_refused(tmp_path: Path) -> None:
    async with coturn(tmp_path, "--use-auth-secret", "--static-auth-secret=north") as relay:
        (made,) = (await SharedSecret(relay.udp, b"south").lend()).relays
        connection = RtcConnection(IceConfig(stun=(), relays=(made,), relay_only=True), "dc_test")
        await connection.make_offer()
        assert "refuses the user name" in connection.tried.relay_errors[0].what
        connection.close("done")
        await connection.closed()


async def test_fetched_credentials_open_the_relay_to_members_too(tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED) as relay:
        server = {"urls": [relay.udp, relay.tcp], "username": USER, "credential": PASSWORD}
        async with giving({"iceServers": [server]}) as (url, _):
            await _lent(CredentialsUrl(url))


async def test_an_ipv6_address_of_a_relay(tmp_path: Path) -> None:
    async with coturn(tmp_path, FIXED, host="[::1]") as relay:
        for url in (relay.udp, relay.tcp):
            async with joined(hiding(url)) as (one, other):
                assert (one.path, other.path) == ("relay", "relay")


async def test_nothing_is_left_when_a_connection_is_given_up_while_a_relay_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listening = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    connection = RtcConnection(hiding(f"turn:127.0.0.1:{port}?transport=tcp"), "dc_test")
    offering = asyncio.create_task(connection.make_offer())
    await asyncio.sleep(0.1)
    offering.cancel()
    connection.close("given up")
    await connection.closed()
    await asyncio.gather(offering, return_exceptions=True)
    listening.close()
    await asyncio.sleep(0.05)
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert [name for name in left if "relay" in name.lower()] == []
