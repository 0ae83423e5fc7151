"""Cases of ``frames.json``: half floats, headers, sending over several channels, receiving with a clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.core.errors import ProtocolError
from app.room.frame import Control, Frame, FrameKind
from app.room.halves import float_to_half, half_to_float, looks_bad
from app.room.keepalive import BYTE, PERIOD_S, KeepAlive
from app.room.slices import HEADER, cut, pack_control, pack_flags, read_control, read_slice
from app.room.wire import WireReceiver, WireSender
from tests.protocol_ops import Case, check
from tests.protocol_ops.values import sha256

KINDS = ("ai-hidden", "ai-hidden-b", "ai-hiddenret", "ai-hiddenret-b")


def _payload(elements: int, seed: int) -> bytes:
    index = np.arange(elements, dtype=np.uint64)
    return ((40503 * index + seed) % 65536).astype("<u2").tobytes()


def _drop(dropped: Any) -> tuple[int, ...]:
    if dropped is None:
        return ()
    return tuple(dropped) if isinstance(dropped, list) else (dropped,)


def _control(words: dict[str, Any]) -> Control:
    slots = {name: words[key] for name, key in (("save", "sv"), ("load", "ld")) if words.get(key) is not None}
    if 0 in slots.values():
        raise ProtocolError("Slot 0 cannot be named; our value for no slot is 0.")
    return Control(bool(words.get("reset")), words.get("rb"), drop=_drop(words.get("dp")), **slots)


def _frame(words: dict[str, Any]) -> Frame:
    if words["t"] not in KINDS:
        raise ProtocolError("Not a frame.")
    kind = FrameKind(KINDS.index(words["t"]))
    position = words.get("basePos" if kind.is_batch else "pos", 0) & 0xFFFFFFFF
    payload = _payload(words["elems"], words["seed"])
    return Frame(kind, position, words.get("n") or 1, payload, bool(words.get("spec")), _control(words))


@check("frames", "f32_to_f16")
def check_f32_to_f16(case: Case) -> None:
    bits = np.array([int(case["in"]["f32"], 16)], np.uint32)
    assert f"{float_to_half(bits.view(np.float32))[0]:04x}" == case["out"]["f16"]


@check("frames", "f16_to_f32")
def check_f16_to_f32(case: Case) -> None:
    value = half_to_float(np.array([int(case["in"]["f16"], 16)], np.uint16))
    assert ("nan" if np.isnan(value[0]) else f"{value.view(np.uint32)[0]:08x}") == case["out"]["f32"]


@check("frames", "f16_roundtrip_all")
def check_f16_roundtrip(case: Case) -> None:
    every = np.arange(65536, dtype=np.uint16)
    values = half_to_float(every)
    # JavaScript keeps one NaN, without its sign.
    values[np.isnan(values)] = np.nan
    back = float_to_half(values)
    assert sha256(back.astype("<u2").tobytes()) == case["out"]["sha256"]
    assert int((back != every).sum()) == case["out"]["differing"]


@check("frames", "pack_f16_bulk")
def check_bulk(case: Case) -> None:
    state, words = 12345, []
    for _ in range(case["in"]["count"]):
        draws = []
        for _ in range(3):
            state = (state * 1664525 + 1013904223) % 2**32
            draws.append(state)
        words.append((draws[1] & 0x80000000) | (101 + (draws[0] >> 8) % 43) << 23 | draws[2] >> 9)
    _check_conversion(np.array(words, np.uint32), case)


@check("frames", "pack_f16_ties")
def check_ties(case: Case) -> None:
    words = [
        (i & 1) << 31 | (113 + i % 28) << 23 | ((37 * i) & 1023) << 13 | 0x1000 for i in range(case["in"]["count"])
    ]
    _check_conversion(np.array(words, np.uint32), case)


def _check_conversion(bits: Any, case: Case) -> None:
    assert sha256(bits.astype("<u4").tobytes()) == case["in"]["f32le_sha256"], "the generator was misread"
    halves = float_to_half(bits.view(np.float32))
    assert [f"{half:04x}" for half in halves[:16]] == case["out"]["first16"]
    assert sha256(halves.astype("<u2").tobytes()) == case["out"]["f16le_sha256"]
    if "unpacked_f32le_sha256" in case["out"]:
        assert sha256(half_to_float(halves).astype("<f4").tobytes()) == case["out"]["unpacked_f32le_sha256"]


@check("frames", "bad_f32")
def check_bad(case: Case) -> None:
    values = np.ones(case["in"]["length"], np.float32)
    for name, bad in (("nanAt", np.nan), ("infAt", np.inf)):
        if case["in"].get(name) is not None:
            values[case["in"][name]] = bad
    assert looks_bad(values) == case["out"]["bad"]


@check("frames", "flags")
def check_flags(case: Case) -> None:
    frame = Frame(FrameKind.HIDDEN, 0, 1, b"", bool(case["in"].get("spec")), _control(case["in"]))
    if "error" in case["out"]:
        with pytest.raises(ProtocolError):
            pack_flags(frame)
        return
    assert pack_flags(frame) == case["out"]["flags"]
    back = read_slice(cut(frame, 1)[0])
    assert back is not None
    assert _flag_words(bool(back.flags & 1), read_control(back.flags, 0, 0, ())) == case["out"]["back"]


def _flag_words(spec: bool, control: Control) -> dict[str, Any]:
    words: dict[str, Any] = {"spec": int(spec)}
    words |= {"reset": 1} if control.reset else {}
    return words | ({} if control.rollback is None else {"rb": control.rollback})


def _slot_words(control: Control) -> dict[str, Any]:
    words = {"sv": control.save, "ld": control.load, "dp": list(control.drop)}
    return {name: word for name, word in words.items() if word}


@check("frames", "ckpt")
def check_ckpt(case: Case) -> None:
    if "error" in case["out"]:
        with pytest.raises(ProtocolError):
            pack_control(_control(case["in"]))
        return
    data = cut(Frame(FrameKind.HIDDEN, 0, 1, b"", control=_control(case["in"])), 1)[0]
    assert data[24:32].hex() == case["out"]["bytes24_31"]
    back = read_slice(data)
    assert back is not None
    assert _slot_words(Control(save=back.save, load=back.load, drop=back.drop)) == case["out"]["back"]


class RecordingOutlet:
    """A channel that notes what it is given."""

    def __init__(self, number: int, backlog: int, grows: bool, refuses: bool, sent: list[tuple[int, bytes]]) -> None:
        self.backlog, self._number, self._grows, self._refuses, self._sent = (
            backlog,
            number,
            grows,
            refuses,
            sent,
        )

    def send(self, data: bytes) -> bool:
        if self._refuses:
            return False
        self.backlog += len(data) if self._grows else 0
        self._sent.append((self._number, data))
        return True


def _outlets(given: dict[str, Any], sent: list[tuple[int, bytes]]) -> list[RecordingOutlet]:
    backlog = given["backlog"]
    levels = backlog if isinstance(backlog, list) else [0] * given["channels"]
    refusing = given.get("note", "") == "channel 1 throws on send"
    return [
        RecordingOutlet(number, levels[number], isinstance(backlog, str), refusing and number == 1, sent)
        for number in range(given["channels"])
    ]


@check("frames", "send")
def check_send(case: Case) -> None:
    sender, sent = WireSender(case["in"]["dup"]), []
    sender.next_id = case["in"]["firstId"]
    outlets = _outlets(case["in"], sent)
    wasted = 0
    for words, recorded in zip(case["in"]["frames"], case["out"]["frames"], strict=True):
        sent.clear()
        if "error" in recorded:
            with pytest.raises(ProtocolError):
                sender.send(_frame(words), outlets)
            wasted += words["t"] in KINDS
        else:
            assert sender.send(_frame(words), outlets) == recorded["returned"]
            assert _sent_slices(sent) == recorded["slices"]
    # The published sender uses up an id for a frame it then refuses; ours validates first.
    assert sender.next_id == case["out"]["nextId"] - wasted
    assert sender.copies == case["out"]["dups"]


def _sent_slices(sent: list[tuple[int, bytes]]) -> list[dict[str, Any]]:
    return [
        {
            "ch": channel,
            "header": data[: HEADER.size].hex(),
            "payloadBytes": len(data) - HEADER.size,
            "sha256": sha256(data),
        }
        for channel, data in sent
    ]


class MillisecondClock:
    """Whole milliseconds, so that recorded instants are met exactly."""

    def __init__(self) -> None:
        self.ms = 0

    def now(self) -> float:
        return self.ms / 1000


class ReceiveScript:
    """Plays one case's events; ``step`` gives the frames that came out with their instants."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.clock = MillisecondClock()
        self.receiver = WireReceiver(self.clock)
        self._slices = [cut(_frame(words), words["id"]) for words in given["frames"]]
        lossy = not given.get("attach", {}).get("ordered", True)
        for channel in range(given["channels"]):
            self.receiver.attach(channel, lossy)

    def step(self, event: dict[str, Any]) -> list[tuple[int, Frame]]:
        if "wait" in event:
            return self._wait(self.clock.ms + event["wait"])
        if "close" in event:
            return self._stamped(self.receiver.closed(event["close"]))
        return self._stamped(self.receiver.receive(event.get("ch", 0), self._fed(event)))

    def _fed(self, event: dict[str, Any]) -> bytes:
        data = bytearray(self._slices[event["f"]][event.get("k", 0)])
        for offset, size, value in event.get("patch", []):
            data[offset : offset + size] = value.to_bytes(size, "big")
        return bytes(data[: -abs(event["cut"])]) if event.get("cut") else bytes(data)

    def _wait(self, until: int) -> list[tuple[int, Frame]]:
        came: list[tuple[int, Frame]] = []
        while self.receiver.deadline is not None and round(self.receiver.deadline * 1000) <= until:
            self.clock.ms = round(self.receiver.deadline * 1000)
            came += self._stamped(self.receiver.tick())
        self.clock.ms = until
        return came

    def _stamped(self, frames: list[Frame]) -> list[tuple[int, Frame]]:
        return [(self.clock.ms, frame) for frame in frames]


@check("frames", "receive")
def check_receive(case: Case) -> None:
    script = ReceiveScript(case["in"])
    for event, step in zip(case["in"]["events"], case["out"]["steps"], strict=True):
        delivered = [_delivered(at, frame) for at, frame in script.step(event)]
        receiver = script.receiver
        assert {
            "at": script.clock.ms,
            "delivered": delivered,
            "expect": receiver.expect,
            "waiting": receiver.waiting,
            "partial": receiver.partial,
            "skipped": receiver.skipped,
        } == step


def _delivered(at: int, frame: Frame) -> dict[str, Any]:
    position = "basePos" if frame.kind.is_batch else "pos"
    whole = frame.payload[: len(frame.payload) // 2 * 2]
    words = {"at": at, "t": KINDS[frame.kind], position: frame.position, "n": frame.columns}
    words |= _flag_words(frame.spec, frame.control) | _slot_words(frame.control)
    return words | {"elems": len(whole) // 2, "sha256": sha256(whole)}


@check("frames", "keepalive")
def check_keepalive(case: Case) -> None:
    rule, clock, backlogs = KeepAlive(), MillisecondClock(), [0] * case["in"]["channels"]
    timer, sent = _Timer(), []
    for event in case["in"]["events"]:
        if "wait" in event:
            sent += timer.run(clock, event["wait"], rule, backlogs)
        elif "backlog" in event:
            backlogs[event["ch"]] = event["backlog"]
        else:
            (rule.frame_sent if "send" in event else rule.frame_received)(clock.now())
            timer.start(clock.ms)
    sent += timer.run(clock, 10_000, rule, backlogs)
    recorded = case["out"]
    assert len(sent) == recorded["count"]
    assert sent[: len(recorded["first"])] == recorded["first"]
    assert sent[-len(recorded["last"]) :] == recorded["last"]
    assert timer.stopped == recorded["timerStopped"]


class _Timer:
    """Ticks the rule every period while it is active, as a link does."""

    def __init__(self) -> None:
        self._next: int | None = None

    @property
    def stopped(self) -> bool:
        return self._next is None

    def start(self, now: int) -> None:
        if self._next is None:
            self._next = now + round(PERIOD_S * 1000)

    def run(self, clock: MillisecondClock, wait: int, rule: KeepAlive, backlogs: list[int]) -> list[dict[str, Any]]:
        until, sent = clock.ms + wait, []
        while self._next is not None and self._next <= until:
            clock.ms = self._next
            channel = rule.tick(clock.now(), backlogs)
            if channel is not None:
                sent.append({"at": clock.ms, "ch": channel, "bytes": BYTE.hex()})
            self._next = clock.ms + round(PERIOD_S * 1000) if rule.active(clock.now()) else None
        clock.ms = until
        return sent
