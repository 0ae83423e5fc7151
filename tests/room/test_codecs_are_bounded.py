"""Whatever a peer sends: a value, a typed error or a drop, never a crash or memory without bound."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.clock import VirtualClock
from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.binarypack import MAX_DEPTH, pack, unpack
from app.room.chunks import MAX_OPEN_MESSAGES, MAX_PIECES, PIECE, Assembler, Chunker
from app.room.frame import DROP_ALL, Control, Frame, FrameKind
from app.room.frame_messages import frame_message, read_frame_message
from app.room.halves import HalfRangeError, pack_halves, unpack_halves
from app.room.line import without_nulls
from app.room.slices import HEADER, cut, read_slice
from app.room.wire import MAX_PARTIALS, WireReceiver, WireSender

# A busy machine may be slow without anything being wrong.
unhurried = settings(deadline=None)

finite = st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: not f.is_integer() or -(2**31) <= f < 2**64)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**64 - 1) | finite | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=40,
)
words = st.integers(1, DROP_ALL - 1)
controls = st.builds(
    Control,
    st.booleans(),
    st.none() | st.integers(0, 62),
    st.just(0) | words,
    st.just(0) | words,
    st.just(()) | st.just((DROP_ALL,)) | st.tuples(words) | st.tuples(words, words),
)
frames = st.builds(
    Frame,
    st.sampled_from(FrameKind),
    st.integers(0, 2**32 - 1),
    st.integers(1, 600),
    st.binary(max_size=20_000),
    st.booleans(),
    controls,
)


@unhurried
@given(values)
def test_packed_values_read_back(value: object) -> None:
    assert unpack(pack(value)) == value


@unhurried
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_typed_error(data: bytes) -> None:
    for read in (unpack, Assembler().feed):
        try:
            read(data)
        except ProtocolError:
            continue


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), np.float32(1.5), np.float64(1), np.int64(1), np.bool_(True)]
)
def test_numbers_without_a_form_are_refused(value: object) -> None:
    with pytest.raises(ProtocolError):
        pack({"t": "x", "n": value})


@pytest.mark.parametrize("value", [{1: 2}, {"t": object()}, "\ud800", 2**64, -(2**31) - 1, {"a": {"b": {1, 2}}}])
def test_values_without_a_form_are_refused(value: object) -> None:
    with pytest.raises(ProtocolError):
        pack(value)


@pytest.mark.parametrize("value", [0.0, -0.0, 2500.0, 1.0])
def test_whole_floats_travel_as_integers(value: float) -> None:
    assert pack(value) == pack(int(value))


def test_deep_nesting_is_refused_both_ways() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(ProtocolError):
        pack(value)
    with pytest.raises(ProtocolError):
        unpack(b"\x91" * 100_000 + b"\x01")


@pytest.mark.parametrize("head", ["dfffffffff", "ddffffffff", "d9ffffffff", "dbffffffff", "deffff", "8f", "9f"])
def test_claimed_lengths_are_checked_first(head: str) -> None:
    with pytest.raises(ProtocolError):
        unpack(bytes.fromhex(head))


@pytest.mark.parametrize("unit", [b"\x80", b"\x90", b"\xb2\xc4\x80", b"\x81\xb0\x00", b"\xc0", b"\xcf" + b"\xff" * 8])
def test_a_message_becomes_no_more_than_ten_times_its_size(unit: bytes) -> None:
    count = PIECE * MAX_PIECES // len(unit)
    data = b"\xdd" + count.to_bytes(4) + unit * count
    tracemalloc.start()
    try:
        with contextlib.suppress(ProtocolError):
            unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 10 * len(data)
    finally:
        tracemalloc.stop()


def test_the_largest_conversation_is_taken() -> None:
    past = m.PastIs(
        model="m",
        turns=(m.TurnItem(text="q", name="n", ids=(1, 2)),) * 4_096,
        classes=((0, 1, "step"),) * 8_192,
        items=(m.HistoryItem("a", "b", "c", "d", "e"),) * 64,
    )
    assert m.decode(cast("dict[str, object]", unpack(pack(m.encode(past))))) == past


def test_message_past_the_piece_limit_is_not_sent() -> None:
    with pytest.raises(ProtocolError):
        Chunker().messages({"t": "x", "data": bytes(PIECE * MAX_PIECES)})


def test_partial_messages_are_limited() -> None:
    assembler, senders = Assembler(), Chunker()
    started = [senders.messages({"t": "x", "n": n, "data": bytes(PIECE + 1)}) for n in range(MAX_OPEN_MESSAGES + 1)]
    for pieces in started:
        assert assembler.feed(pieces[0]) is None
    assert assembler.feed(started[-1][1]) is None, "the ninth was not begun"
    assert assembler.feed(started[0][1]) == {"t": "x", "n": 0, "data": bytes(PIECE + 1)}


@pytest.mark.parametrize(
    "piece",
    [
        {"n": 0, "total": 0, "data": b""},
        {"n": 0, "total": MAX_PIECES + 1, "data": b""},
        {"n": 2, "total": 2, "data": b""},
        {"n": -1, "total": 2, "data": b""},
        {"n": 0, "total": 1, "data": bytes(PIECE + 1)},
        {"n": 0.5, "total": 2, "data": b""},
        {"n": True, "total": 2, "data": b""},
        {"n": 0, "total": 1, "data": "text"},
        {},
    ],
)
def test_bad_pieces_are_dropped(piece: dict[str, object]) -> None:
    assert Assembler().feed(pack({"__peerData": 1, **piece})) is None


@unhurried
@given(frames)
def test_frames_cross_the_wire_and_the_control_channel(frame: Frame) -> None:
    receiver = WireReceiver(VirtualClock())
    receiver.attach("only")
    came = [each for data in cut(frame, 1) for each in receiver.receive("only", data)]
    assert came == [frame]
    assert read_frame_message(unpack(pack(frame_message(frame)))) == frame  # type: ignore[arg-type]


@unhurried
@given(st.binary(min_size=HEADER.size, max_size=200))
def test_any_slice_is_taken_or_dropped(tail: bytes) -> None:
    receiver = WireReceiver(VirtualClock())
    receiver.attach("only")
    receiver.receive("only", b"SW" + tail)
    read_slice(tail)


def test_partial_frames_are_limited() -> None:
    receiver = WireReceiver(VirtualClock())
    receiver.attach("only")
    for frame_id in range(2, 2 * MAX_PARTIALS):
        receiver.receive("only", cut(Frame(FrameKind.HIDDEN, 0, 1, bytes(5000)), frame_id)[0])
    assert len(receiver.partial) == MAX_PARTIALS


@pytest.mark.parametrize("columns", [0, 2**16])
def test_frames_out_of_range_are_not_sent(columns: int) -> None:
    sender = WireSender()
    with pytest.raises(ProtocolError):
        sender.send(Frame(FrameKind.HIDDEN, 0, columns, b""), [Silent()])
    assert sender.next_id == 1


class Silent:
    backlog = 0

    def send(self, _data: bytes) -> bool:
        return True


@pytest.mark.parametrize(
    "change",
    [
        {"pos": -1},
        {"pos": 1.5},
        {"n": 0},
        {"data": "text"},
        {"enc": "bf16"},
        {"enc": []},
        {"enc": {}},
        {"sv": -1},
        {"dp": [0]},
        {"dp": {}},
        {"rb": 63},
    ],
)
def test_bad_frame_messages_are_dropped(change: dict[str, object]) -> None:
    good = {"t": "ai-hidden", "pos": 1, "n": 1, "data": b"\0\0", "enc": "f16"}
    assert read_frame_message(good) is not None
    assert read_frame_message({**good, **change}) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 65_505.0, -70_000.0])
def test_states_that_do_not_fit_name_their_place(bad: float) -> None:
    states = np.ones((3, 50), np.float32)
    states[1, 7] = bad
    with pytest.raises(HalfRangeError, match="layers 3-9"):
        pack_halves(states, "layers 3-9")


def test_states_round_trip() -> None:
    states = np.linspace(-65_504, 65_504, 4 * 64, dtype=np.float32).reshape(4, 64)
    back = unpack_halves(pack_halves(states, "here"), 64)
    assert back.shape == (4, 64)
    assert np.allclose(back, states, rtol=2**-11)
    with pytest.raises(HalfRangeError):
        unpack_halves(bytes(130), 64)


def test_nulls_mean_absent() -> None:
    assert without_nulls({"a": None, "b": {"c": None, "d": 0}, "e": [{"f": None}, 1]}) == {
        "b": {"d": 0},
        "e": [{}, 1],
    }
