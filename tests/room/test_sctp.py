"""The tuned SCTP: a hidden state crosses a path with delay in one round trip."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import aioice.ice
import pytest

from app.core.errors import LinkError
from app.room import sctp
from app.room.ice import IceConfig
from app.room.rtc import RtcConnection
from tests.room.loopback import until, use_loopback

ONE_WAY_S = 0.015
SIZE, SLICES = 16 * 1024, 4
LIMIT_S = 0.040


def test_untested_version_is_refused() -> None:
    with pytest.raises(LinkError):
        sctp.install("1.17.0")


def _delay_datagrams(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = aioice.ice.StunProtocol.datagram_received

    def late(protocol: Any, data: bytes, address: Any) -> None:
        asyncio.get_running_loop().call_later(ONE_WAY_S, arrived, protocol, data, address)

    monkeypatch.setattr(aioice.ice.StunProtocol, "datagram_received", late)


async def _connected() -> tuple[RtcConnection, RtcConnection]:
    ice = IceConfig(stun=())
    one, other = RtcConnection(ice, "dc_test"), RtcConnection(ice, "dc_test")
    await one.take_answer(await other.take_offer(await one.make_offer()))
    await until(lambda: one.wire_open and other.wire_open and one.is_open)
    for connection in (one, other):
        connection.release_wire()
    return one, other


async def _echo(one: RtcConnection) -> float:
    """Seconds until all of SIZE bytes, in the wire's slices, are there and back."""
    came: list[bytes] = []
    one.on_wire = came.append
    started = time.perf_counter()
    for _ in range(SLICES):
        assert one.send_wire(bytes(SIZE // SLICES))
    await until(lambda: len(came) == SLICES, seconds=10)
    return time.perf_counter() - started


async def test_16_kb_echo_over_30_ms_takes_one_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    _delay_datagrams(monkeypatch)
    one, other = await _connected()
    other.on_wire = other.send_wire
    # A busy machine may slow any one echo; without the tuning every one takes three round trips.
    best = 1.0
    for _ in range(40):
        best = min(best, await _echo(one))
        if best <= LIMIT_S:
            break
    for connection in (one, other):
        connection.close("done")
        await connection.closed()
    assert 2 * ONE_WAY_S <= best <= LIMIT_S


async def test_everything_arrives_over_a_path_that_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    one, other = await _connected()
    arrived, count = aioice.ice.StunProtocol.datagram_received, itertools.count()

    def lossy(protocol: Any, data: bytes, address: Any) -> None:
        if next(count) % 11:
            arrived(protocol, data, address)

    monkeypatch.setattr(aioice.ice.StunProtocol, "datagram_received", lossy)
    came: list[int] = []
    other.on_wire = lambda data: came.append(int.from_bytes(data[:2]))
    for number in range(60):
        one.send_wire(number.to_bytes(2) + bytes(4_000))
    await until(lambda: len(came) == 60, seconds=30)
    assert came == list(range(60))
    monkeypatch.undo()
    for connection in (one, other):
        connection.close("done")
        await connection.closed()


async def test_an_acknowledgement_after_the_end_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    one, other = await _connected()
    transport: Any = one._peer.sctp
    transport.transport._ssl.shutdown()
    await transport._acknowledge()
    for connection in (one, other):
        connection.close("done")
        await connection.closed()


async def test_binding_is_equal_at_both_ends_and_one_line_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    ice = IceConfig(stun=())
    one, other = RtcConnection(ice, "dc_test"), RtcConnection(ice, "dc_test")
    offer = await one.make_offer()
    answer = await other.take_offer(offer)
    await one.take_answer(answer)
    for sdp in (offer, answer):
        lines = [line for line in sdp.splitlines() if "fingerprint" in line]
        assert len(lines) == 1
        assert lines[0].startswith("a=fingerprint:sha-256 ")
    assert one.binding == other.binding != ""
    assert one.binding == one.binding.lower()
    for connection in (one, other):
        connection.close("done")
        await connection.closed()


async def test_wire_input_is_held_until_released(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)
    one, other = await _connected()
    other._early = []
    came: list[bytes] = []
    other.on_wire = came.append
    for number in range(3):
        one.send_wire(bytes([number]))
    await until(lambda: len(other._early or []) == 3)
    assert came == []
    other.release_wire()
    one.send_wire(b"\3")
    await until(lambda: len(came) == 4)
    assert came == [b"\0", b"\1", b"\2", b"\3"]
    for connection in (one, other):
        connection.close("done")
        await connection.closed()


@pytest.mark.parametrize("sdp", ["", "v=0", "v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", "x" * 70_000])
async def test_damaged_description_is_refused(monkeypatch: pytest.MonkeyPatch, sdp: str) -> None:
    use_loopback(monkeypatch)
    connection = RtcConnection(IceConfig(stun=()), "dc_test")
    with pytest.raises(LinkError):
        await connection.take_offer(sdp)
    connection.close("done")
    await connection.closed()


@pytest.mark.parametrize(
    "candidate", [{}, {"candidate": 5}, {"candidate": "nonsense"}, {"candidate": "candidate:1 1 udp x"}]
)
async def test_damaged_candidate_is_ignored(monkeypatch: pytest.MonkeyPatch, candidate: dict[str, Any]) -> None:
    use_loopback(monkeypatch)
    one, other = RtcConnection(IceConfig(stun=()), "dc_test"), RtcConnection(IceConfig(stun=()), "dc_test")
    await other.take_offer(await one.make_offer())
    await other.add_candidate({"sdpMid": "0", **candidate})
    for connection in (one, other):
        connection.close("done")
        await connection.closed()
