"""No way from one device to the other: said in time, with what can be done about it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from app.core.errors import LinkError
from app.room import dialer as dialing
from app.room import gathering
from app.room.gate import Credentials, Gate
from app.room.gathering import RelayError
from app.room.ice import IceConfig, Relay
from app.room.no_path import APART, BLOCKED, Attempt, End, no_path, same_network
from app.room.rtc import RtcConnection
from tests.room.loopback import Device, outcome, room_server, use_loopback

CODE = "4TKG9P"
HELLO = {"name": "otter", "meta": {}}
HOME = End(("192.168.1.20",))
RELAYED = End(("192.168.1.20",), relay=("203.0.113.9",))
REFUSED = RelayError("The relay turn:r refuses the user name or password.", "Check both in the settings.")


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        (HOME, End(("192.168.1.99",)), True),
        (HOME, End(("192.168.2.99",)), False),
        (End(("fd00::1",)), End(("fd00::2",)), True),
        (End(("8.8.8.8",)), End(("8.8.8.9",)), False),
        (End(("10.0.0.1",), ("198.51.100.7",)), End(("10.9.9.9",), ("198.51.100.7",)), True),
        (End(("x.local",)), End(("x.local",)), False),
        (End(("fe80::1",)), End(("fe80::2",)), False),
        (End(), End(), False),
    ],
)
def test_behind_one_router(mine: End, theirs: End, same: bool) -> None:
    assert same_network(mine, theirs) == same


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (Attempt(HOME, End(("192.168.1.99",))), APART),
        (Attempt(HOME, End(("10.0.0.9",)), stun=True), BLOCKED),
        (Attempt(End(HOME.host, ("198.51.100.7",)), End(("10.0.0.9",)), stun=True), "Join the same Wi-Fi"),
        (Attempt(HOME, End(("10.0.0.9",))), "Join the same Wi-Fi"),
        (Attempt(HOME, End(), relays=1, relay_errors=(REFUSED,)), "No direct path was found, and it fails: The relay"),
        (Attempt(End(), End(), relays=1, hidden=True, relay_errors=(REFUSED,)), "over a relay, and it fails: The"),
        (Attempt(), "on no network"),
        (Attempt(RELAYED, HOME, relays=2, relay_errors=(REFUSED,)), "not even over the relay"),
    ],
)
def test_what_to_do_fits_what_was_tried(attempt: Attempt, words: str) -> None:
    error = no_path(attempt)
    assert words in f"{error.what} {error.remedy}"
    assert error.remedy


def unroutable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end tells the other an address that leads nowhere."""
    read = dialing._sdp

    def elsewhere(payload: Any) -> str:
        return re.sub(r"127\.0\.0\.1 (\d+) typ", r"192.0.2.1 \1 typ", read(payload))

    monkeypatch.setattr(dialing, "_sdp", elsewhere)


async def _refused(creator: Device, member: Device) -> LinkError:
    await creator.transport.open_room(CODE, Gate(), HELLO)
    error = await asyncio.wait_for(outcome(member.transport.join(CODE, Credentials(), HELLO)), 30)
    await member.transport.close()
    await creator.transport.close()
    assert isinstance(error, LinkError)
    return error


def test_it_is_said_within_forty_seconds() -> None:
    assert dialing.OPEN_S == 40


async def test_an_address_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    unroutable(monkeypatch)
    monkeypatch.setattr(dialing.Dialer.dial, "__defaults__", (False, 1.5))
    async with room_server() as server:
        error = await _refused(Device([server]), Device([server]))
    assert error.what == "The two devices cannot reach each other."
    assert "relay" in error.remedy


async def test_a_relay_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    unroutable(monkeypatch)
    monkeypatch.setattr(dialing.Dialer.dial, "__defaults__", (False, 2.5))
    monkeypatch.setattr(gathering, "RELAY_S", 0.5)
    relay = Relay("turn:127.0.0.1:9", "u", "p")
    async with room_server() as server:
        error = await _refused(Device([server]), Device([server], ice=IceConfig(stun=(), relays=(relay,))))
        hidden = IceConfig(stun=(), relays=(relay,), relay_only=True)
        at_once = await _refused(Device([server]), Device([server], ice=hidden))
    for each in (error, at_once):
        assert "The relay turn:127.0.0.1:9 does not answer." in each.what
        assert "TCP" in each.remedy


async def test_a_device_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    monkeypatch.setattr(dialing.Dialer.dial, "__defaults__", (False, 0.5))
    monkeypatch.setattr(dialing.Dialer, "_offered", lambda *_arguments: None)
    async with room_server() as server:
        error = await _refused(Device([server]), Device([server]))
    assert error.what == "The other device does not answer."


async def test_what_was_tried_can_be_told_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    connection = RtcConnection(IceConfig(stun=()), "dc_test")
    await connection.make_offer()
    connection.close("done")
    await connection.closed()
    assert connection.tried.mine == End(("127.0.0.1",))
