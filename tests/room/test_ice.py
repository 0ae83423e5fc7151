"""Relays: which addresses count, and when they hide this device."""

from __future__ import annotations

import pytest
from aiortc.rtcconfiguration import RTCIceTransportPolicy

from app.room.ice import MOST_RELAYS, IceConfig, Relay, RelayAddress


@pytest.mark.parametrize(
    ("url", "valid"),
    [
        ("turn:relay.example", True),
        ("turn:relay.example:3478?transport=udp", True),
        ("turns:10.0.0.2:5349?transport=tcp", True),
        ("turn:[fe80::1]:3478", True),
        ("stun:relay.example", False),
        ("turn:relay.example:123456", False),
        ("turn:relay.example:65536", False),
        ("turn:relay.example:0", False),
        ("turn:relay.example:\u0663", False),
        ("turn:relay.example:65535", True),
        ("turn:relay.example?transport=sctp", False),
        ("turn:", False),
        ("turn:a b", False),
    ],
)
def test_relay_addresses(url: str, valid: bool) -> None:
    assert Relay(url).valid == valid


def test_a_bad_relay_is_left_out() -> None:
    good = Relay("turn:relay.example", "u", "p")
    assert IceConfig(relays=(Relay("turn:"), good, good)).usable == (good,)
    assert len(IceConfig(relays=tuple(Relay(f"turn:r{n}.example") for n in range(40))).usable) == MOST_RELAYS


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("turn:relay.example", RelayAddress("relay.example", 3478, tcp=False, tls=False)),
        ("turn:relay.example?transport=tcp", RelayAddress("relay.example", 3478, tcp=True, tls=False)),
        ("turns:relay.example", RelayAddress("relay.example", 5349, tcp=True, tls=True)),
        ("turn:[2001:db8::1]:99", RelayAddress("2001:db8::1", 99, tcp=False, tls=False)),
        ("turns:relay.example?transport=udp", None),
        ("turn:relay.example:0", None),
    ],
)
def test_how_a_relay_is_spoken_to(url: str, address: RelayAddress | None) -> None:
    assert Relay(url).address == address


@pytest.mark.parametrize(("relays", "hidden"), [((), False), ((Relay("turn:"),), False), ((Relay("turn:r"),), True)])
def test_relay_only_needs_a_relay(relays: tuple[Relay, ...], hidden: bool) -> None:
    policy = IceConfig(relays=relays, relay_only=True).configuration().iceTransportPolicy
    assert (policy == RTCIceTransportPolicy.RELAY) == hidden


def test_the_password_is_not_in_representations() -> None:
    assert "secret" not in repr(Relay("turn:r", "u", "secret"))
