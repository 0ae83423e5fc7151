"""Credentials for a relay: how they are made and fetched, when they are renewed, and who gets to see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from app.core.clock import VirtualClock
from app.core.errors import LinkError
from app.room import messages as m
from app.room.ice import IceConfig, Relay
from app.room.relays import (
    LIFE_S,
    LONGEST_LIFE_S,
    RETRY_S,
    SHORTEST_LIFE_S,
    CredentialsUrl,
    Lease,
    Relays,
    SharedSecret,
    lease_message,
    minted,
    read_lease,
    read_lease_message,
)
from tests.room.loopback import outcome, until

OWN = Relay("turn:own.example", "me", "mine")
LENT = Relay("turn:lent.example", "1", "2")


def test_made_credentials_are_what_the_relay_computes() -> None:
    """The value is of OpenSSL: printf 1700021600:otter | openssl dgst -sha1 -hmac north -binary | base64."""
    made = minted("turn:r.example", b"north", 1_700_021_600.9, "otter")
    assert made.user == "1700021600:otter"
    assert made.password == "MZ070C/K57FAI0xJxkL9JC3S4Ns="
    assert minted("turn:r.example", b"north", 1_700_021_600).user == "1700021600"


async def test_a_shared_secret_makes_six_hours() -> None:
    lease = await SharedSecret("turn:r.example", b"north", now=lambda: 1000.0).lend()
    assert lease.life == LIFE_S == 6 * 3600
    assert lease.relays == (minted("turn:r.example", b"north", 1000 + 6 * 3600),)


@asynccontextmanager
async def giving(answer: Any, status: int = 200, wait: float = 0.0) -> AsyncIterator[tuple[str, list[str]]]:
    """An address for credentials on 127.0.0.1, and the methods it was asked with."""
    asked: list[str] = []

    async def give(request: web.Request) -> web.Response:
        asked.append(request.method)
        await asyncio.sleep(wait)
        return web.Response(status=status, body=answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    application = web.Application()
    application.router.add_route("*", "/turn", give)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/turn", asked
    finally:
        await runner.cleanup()


async def test_credentials_are_fetched_by_post() -> None:
    urls = ["stun:s.example", "turn:a.example", "turns:a.example:443?transport=tcp"]
    servers = [{"urls": urls, "username": "u", "credential": "p"}, {"urls": "turn:b.example"}]
    async with giving({"iceServers": servers, "more": 1}) as (url, asked):
        lease = await CredentialsUrl(url).lend()
    assert asked == ["POST"]
    assert lease.relays == (Relay(urls[1], "u", "p"), Relay(urls[2], "u", "p"), Relay("turn:b.example"))
    assert lease.life == LIFE_S


async def test_no_content_means_no_relay() -> None:
    async with giving(b"", status=204) as (url, _):
        assert (await CredentialsUrl(url).lend()).relays == ()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"", 200),
        (b"[]", 200),
        ({"iceServers": [{"urls": 5}]}, 200),
        (b"[" * 50_000, 200),
        (b" " * 70_000, 200),
        ({}, 403),
        ({}, 302),
    ],
)
async def test_another_answer_is_an_error(answer: Any, status: int) -> None:
    async with giving(answer, status) as (url, _):
        assert isinstance(await outcome(CredentialsUrl(url).lend()), LinkError)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://127.0.0.1:1/turn", "https://[", "http://:x/"])
async def test_an_address_that_cannot_be_asked_is_an_error(url: str) -> None:
    assert isinstance(await outcome(CredentialsUrl(url).lend()), LinkError)


async def test_a_silent_address_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.room.relays.ANSWER_S", 0.1)
    async with giving({}, wait=30) as (url, _):
        assert isinstance(await asyncio.wait_for(outcome(CredentialsUrl(url).lend()), 10), LinkError)


@pytest.mark.parametrize(
    ("ttl", "user", "life"),
    [
        (0, "1700:x", 700.0),
        (0, "900:x", LIFE_S),
        (0, "x", LIFE_S),
        (3600, "x", 3600.0),
        (1, "x", SHORTEST_LIFE_S),
        (1e9, "x", LONGEST_LIFE_S),
    ],
)
def test_how_long_fetched_credentials_live(ttl: float, user: str, life: float) -> None:
    answer = {"iceServers": [{"urls": "turn:r.example", "username": user, "credential": "p"}], "ttl": ttl}
    assert read_lease(json.dumps(answer).encode(), now=1000.0).life == life


class Counting:
    """A lender whose leases can be told apart; fails while ``down``."""

    def __init__(self) -> None:
        self.lent, self.down = 0, False

    async def lend(self) -> Lease:
        self.lent += 1
        if self.down:
            raise LinkError("Nothing there.")
        return Lease((Relay("turn:r.example", str(self.lent), "p"),), 1000.0)


class Waits:
    """Sleeping that ends when told, and what was asked for."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock, self.asked = clock, asyncio.Queue[tuple[float, asyncio.Future[None]]]()

    async def sleep(self, seconds: float) -> None:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.asked.put((seconds, ended))
        await ended

    async def over(self) -> float:
        seconds, ended = await asyncio.wait_for(self.asked.get(), 5)
        self.clock.advance(seconds)
        ended.set_result(None)
        return seconds


async def test_credentials_are_renewed_at_three_quarters_of_their_life_and_later_connections_get_them() -> None:
    clock, lender = VirtualClock(), Counting()
    waits, told = Waits(clock), list[Lease]()
    relays = Relays(IceConfig(), lender, clock, waits.sleep)
    relays.on_lease = told.append
    await relays.start()
    await relays.start()
    assert [relay.user for relay in relays.ice().relays] == ["1"]
    assert await waits.over() == 750
    await until(lambda: len(told) == 2)
    assert [relay.user for relay in relays.ice().relays] == ["2"]
    lender.down = True
    assert await waits.over() == 750
    await until(lambda: lender.lent == 3)
    assert relays.lease
    assert relays.lease.life == 250
    assert [await waits.over() for _ in range(4)] == [RETRY_S] * 4
    await until(lambda: lender.lent == 7)
    assert (await waits.asked.get())[0] == RETRY_S
    clock.advance(RETRY_S)
    assert relays.lease is None
    assert relays.ice().relays == ()
    await relays.close()


async def test_a_lender_that_fails_at_first_is_asked_again() -> None:
    clock, lender = VirtualClock(), Counting()
    waits, lender.down = Waits(clock), True
    relays = Relays(IceConfig(), lender, clock, waits.sleep)
    await relays.start()
    assert relays.ice().relays == ()
    lender.down = False
    assert await waits.over() == RETRY_S
    await until(lambda: bool(relays.ice().relays))
    await relays.close()


def test_lent_relays_come_after_the_own_ones_and_expire() -> None:
    clock = VirtualClock()
    relays = Relays(IceConfig(relays=(OWN,)), None, clock)
    relays.borrow(Lease((LENT,), 600))
    assert relays.ice().relays == (OWN, LENT)
    assert relays.lease is None
    clock.advance(601)
    assert relays.ice().relays == (OWN,)


def test_who_hides_behind_a_relay_of_its_own_uses_no_other() -> None:
    relays = Relays(IceConfig(relays=(OWN,), relay_only=True), None, VirtualClock())
    relays.borrow(Lease((LENT,), 600))
    assert relays.ice().relays == (OWN,)
    without = Relays(IceConfig(relay_only=True), None, VirtualClock())
    assert not without.ice().hidden
    without.borrow(Lease((LENT,), 600))
    assert without.ice().hidden


def test_a_lease_travels_as_a_message() -> None:
    lease = Lease((OWN, LENT), 5000.0)
    told = m.decode(m.encode(lease_message(lease)))
    assert isinstance(told, m.RelayLease)
    assert read_lease_message(told) == lease
    assert "mine" not in repr(told)
    bad = m.RelayLease((m.LentRelay("stun:x"), m.LentRelay("turn:[")), 1.0)
    assert read_lease_message(bad) == Lease((), SHORTEST_LIFE_S)


def test_no_secret_is_shown_by_what_holds_it() -> None:
    made = minted("turn:r.example", b"north", 1e9)
    shown = f"{SharedSecret('turn:r.example', b'north')} {made} {Lease((made,), 1.0)} {IceConfig(relays=(made,))}"
    assert "north" not in shown
    assert made.password not in shown
