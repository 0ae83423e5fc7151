"""A link over connections that only note what they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.core.clock import SystemClock, VirtualClock
from app.room import ports
from app.room.binarypack import pack, unpack
from app.room.chunks import Chunker
from app.room.frame import Frame, FrameKind
from app.room.line import STRIPE_LABEL, Line
from app.room.link import COPY_AFTER_S, PeerLink
from app.room.slices import cut
from tests.room.loopback import until

FRAMES = [Frame(FrameKind.HIDDEN, position, 1, b"\1\2") for position in range(4)]


class FakeConnection:
    """One connection with its three channels."""

    def __init__(self, wire_open: bool = True) -> None:
        self.on_control: Callable[[bytes], None]
        self.on_heard: Callable[[], None]
        self.on_closed: Callable[[str], None]
        self.on_wire: Callable[[bytes], None]
        self.binding = "a,b"
        self.path = "direct"
        self.control_backlog = self.wire_backlog = self.keepalive_backlog = 0
        self.wire_open = wire_open
        self.acknowledged = False
        self.control: list[bytes] = []
        self.wire: list[bytes] = []
        self.keepalives = 0
        self.released = False

    def send_control(self, data: bytes) -> bool:
        self.control.append(data)
        return True

    def send_wire(self, data: bytes) -> bool:
        self.wire.append(data)
        return True

    def send_keepalive(self, _data: bytes) -> bool:
        self.keepalives += 1
        return True

    def release_wire(self) -> None:
        self.released = True

    def close(self, reason: str) -> None:
        self.on_closed(reason)


class Rig:
    """A link that notes what it hands over."""

    def __init__(self, clock: Any = None, wire_open: bool = True, **options: Any) -> None:
        self.clock = clock or SystemClock()
        self.main = FakeConnection(wire_open)
        self.line = self._line(self.main, "dc_1")
        self.link = PeerLink(self.line, self.clock, **options)
        self.messages: list[ports.Message] = []
        self.frames: list[Frame] = []
        self.ended: list[str] = []
        self.link.on_message = self.messages.append
        self.link.on_frame = self.frames.append
        self.link.on_closed = self.ended.append

    def _line(self, connection: FakeConnection, label: str) -> Line:
        return Line(connection, "bob", "dc_1", label, True, self.clock)  # type: ignore[arg-type]

    def add_stripe(self) -> FakeConnection:
        connection = FakeConnection()
        self.link.add_stripe(self._line(connection, STRIPE_LABEL))
        return connection


async def test_a_stranger_fills_no_memory() -> None:
    heard: list[ports.Message] = []
    connection = FakeConnection()
    line = Line(connection, "bob", "dc_1", "dc_1", False, SystemClock())  # type: ignore[arg-type]
    line.listen(heard.append)
    hello = {"t": "hello", "v": 4, "meta": {f"m{n}": "x" * 100 for n in range(5_000)}}
    pieces = Chunker().messages(hello)
    for data in (pack(hello), *pieces):
        connection.on_control(data)
    assert heard == []
    assert line.open
    line.trust()
    for data in pieces:
        connection.on_control(data)
    assert heard == [hello]


async def test_wire_is_released_and_kept_messages_come_first() -> None:
    rig = Rig()
    rig.main.on_control(pack({"t": "second"}))
    rig.link.start([{"t": "first"}])
    assert rig.main.released
    assert [message["t"] for message in rig.messages] == ["first", "second"]


async def test_frames_take_the_control_channel_when_no_wire_is_open() -> None:
    rig = Rig(wire_open=False)
    rig.link.start()
    rig.link.send_frame(FRAMES[1])
    assert rig.main.wire == []
    rig.main.on_control(rig.main.control[0])
    assert rig.frames == [FRAMES[1]]
    assert rig.messages == []
    assert unpack(rig.main.control[0])["t"] == "ai-hidden"  # type: ignore[index]
    rig.link.close()


async def test_small_frames_are_doubled_over_two_connections() -> None:
    rig = Rig()
    rig.link.start()
    stripe = rig.add_stripe()
    rig.link.send_frame(FRAMES[0])
    assert len(rig.main.wire) + len(stripe.wire) == 1
    await until(lambda: (len(rig.main.wire), len(stripe.wire)) == (1, 1))
    rig.main.on_wire(rig.main.wire[0])
    stripe.on_wire(stripe.wire[0])
    assert rig.frames == [FRAMES[0]]
    rig.link.close()


async def test_what_was_acknowledged_in_time_is_sent_once() -> None:
    rig = Rig()
    rig.link.start()
    stripe = rig.add_stripe()
    rig.link.send_frame(FRAMES[0])
    first, other = (rig.main, stripe) if rig.main.wire else (stripe, rig.main)
    first.acknowledged = True
    rig.link.send_frame(FRAMES[1])
    await until(lambda: len(first.wire) == 2)
    await asyncio.sleep(4 * COPY_AFTER_S)
    assert (len(first.wire), len(other.wire)) == (2, 1)
    rig.link.close()


async def test_a_lost_frame_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.room.wire.BACKSTOP_S", 0.03)
    rig = Rig(keepalive=False)
    rig.link.start()
    rig.add_stripe().on_wire(cut(FRAMES[2], 2)[0])
    assert rig.frames == []
    await until(lambda: rig.frames)
    assert rig.frames == [FRAMES[2]]
    assert rig.link._gap_timer is None
    rig.link.close()


async def test_a_closed_stripe_gives_up_what_only_it_could_bring() -> None:
    rig = Rig(keepalive=False)
    lost: list[int] = []
    rig.link.on_stripe_lost = lambda: lost.append(rig.link.stripes)
    rig.link.start()
    stripe = rig.add_stripe()
    rig.main.on_wire(cut(FRAMES[2], 2)[0])
    stripe.close("cut")
    assert rig.frames == [FRAMES[2]]
    assert lost == [1]
    rig.link.close()


async def test_keepalives_flow_while_active_and_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.room.keepalive.ACTIVE_S", 0.1)
    rig = Rig()
    rig.link.start()
    rig.link.send_frame(FRAMES[0])
    await until(lambda: rig.link._keepalive_timer is None)
    assert 1 <= rig.main.keepalives <= 10


async def test_bad_handlers_end_nothing() -> None:
    rig = Rig(keepalive=False)

    def broken(_what: object) -> None:
        raise KeyError("x")

    rig.link.on_message = rig.link.on_frame = broken
    rig.link.start()
    rig.main.on_control(pack({"t": "x"}))
    rig.main.on_wire(cut(FRAMES[0], 1)[0])
    rig.main.on_control(b"\xdf\xff")
    assert rig.link.open


async def test_the_end_is_told_once_and_leaves_no_timer() -> None:
    rig = Rig()
    rig.link.start()
    stripe = rig.add_stripe()
    rig.link.send_frame(FRAMES[0])
    rig.main.on_wire(cut(FRAMES[2], 3)[0])
    rig.link.close("enough")
    rig.link.close("again")
    assert rig.ended == ["enough"]
    assert rig.link._gap_timer is None
    assert rig.link._keepalive_timer is None
    before = len(rig.main.control), len(stripe.wire)
    rig.link.send({"t": "late"})
    rig.link.send_frame(FRAMES[1])
    assert before == (len(rig.main.control), len(stripe.wire))


async def test_pong_gives_the_round_trip_and_any_byte_is_a_sign_of_life() -> None:
    clock = VirtualClock(100.0)
    rig = Rig(clock, keepalive=False)
    rig.link.start()
    clock.advance(0.25)
    rig.main.on_control(pack({"t": "pong", "ts": 100_000.0}))
    assert rig.link.rtt == pytest.approx(0.25)
    stripe = rig.add_stripe()
    clock.advance(5)
    stripe.on_heard()
    assert rig.link.last_heard == clock.now()


async def test_a_link_that_died_during_its_proof_says_so() -> None:
    rig = Rig()
    rig.main.on_closed("gone")
    rig.link.start()
    assert rig.ended == ["closed"]


async def test_a_peer_that_does_not_read_is_dropped() -> None:
    rig = Rig()
    rig.link.start()
    rig.main.control_backlog = 2**40
    rig.link.send({"t": "x"})
    await asyncio.sleep(0)
    assert rig.ended


async def test_the_third_unreadable_piece_ends_the_link() -> None:
    rig = Rig()
    rig.link.start()
    for _ in range(2):
        rig.main.on_control(b"\xdf\xff")
    assert rig.link.open
    rig.main.on_control(b"\xdf\xff")
    assert not rig.link.open
