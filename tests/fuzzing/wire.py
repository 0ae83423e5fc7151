"""What comes over a connection: values, pieces, slices, messages, frames in messages, descriptions of devices."""

from __future__ import annotations

import itertools
import math
import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, cast

import msgspec

from app.core.clock import VirtualClock
from app.core.errors import ProtocolError
from app.room import messages as m
from app.room.binarypack import pack, unpack
from app.room.chunks import MAX_OPEN_MESSAGES, Assembler, Chunker
from app.room.frame import Control, Frame, FrameKind
from app.room.frame_messages import NAMES, frame_message, read_frame_message
from app.room.halves import HalfRangeError, unpack_halves
from app.room.line import without_nulls
from app.room.meta import meta_map, read_meta
from app.room.names import LONGEST, clean_name
from app.room.slices import cut
from app.room.wire import MAX_HELD_BYTES, MAX_PARTIALS, WireReceiver
from tests.fuzzing.guard import Fault, Target
from tests.fuzzing.mutate import packed, packed_map, text

REQUIRED: dict[str, object] = {
    "cert": b"0\x82",
    "members": [{"id": "a", "name": "otter", "meta": {"contribGB": 8.5}, "a": 1}],
    "id": "device-1", "model": "m", "range": [0, 9], "ctx": 2048, "next": "host", "gb": 1.5,
}  # fmt: skip
FIELDS = {tag: kind.__struct_fields__ for tag, kind in m.KINDS.items()}
WORDS = sorted({name for names in FIELDS.values() for name in names} | {*REQUIRED, "t", "v", "enc", "data", "f16"})
_NOISE = Random(1).randbytes(5_000)
FRAMES = [
    Frame(FrameKind.HIDDEN, 7, 1, _NOISE[:64]),
    Frame(FrameKind.HIDDEN_BATCH, 12, 4, _NOISE[:256], True, Control(True, 3, 5, 6, (7, 8))),
    Frame(FrameKind.RETURN_BATCH, 0, 2, _NOISE[:128], control=Control(drop=(0xFFFF,))),
    Frame(FrameKind.HIDDEN_BATCH, 3, 16, _NOISE[:5_000]),
]


def sample_messages() -> list[dict[str, Any]]:
    """One valid map of every kind."""
    made: list[dict[str, Any]] = []
    for tag, kind in m.KINDS.items():
        needed = {field.name: REQUIRED[field.name] for field in msgspec.structs.fields(kind) if field.required}
        message = m.decode({"t": tag, **needed})
        assert message is not None
        made.append(m.encode(message))
    return made


def packed_samples() -> list[bytes]:
    return [pack(message) for message in sample_messages()]


def together(parts: Sequence[bytes]) -> bytes:
    """Several inputs as one, each behind its length."""
    return b"".join(struct.pack(">H", len(part)) + part for part in parts)


def apart(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 2 <= len(data):
        (length,) = struct.unpack_from(">H", data, at)
        if length:
            yield data[at + 2 : at + 2 + length]
        at += 2 + length


def read_map(data: bytes) -> Mapping[str, object] | None:
    """As a connection reads it: a map without its nulls."""
    value = unpack(data)
    return cast("Mapping[str, object]", without_nulls(value)) if isinstance(value, Mapping) else None


def any_value(rng: Random) -> bytes:
    return packed(rng, WORDS)


def any_message(rng: Random) -> bytes:
    """A known tag with its own members, each a likely or an unlikely value."""
    tag = rng.choice(sorted(FIELDS))
    members = {name: packed(rng, WORDS, 2) for name in FIELDS[tag] if rng.random() < 0.7}
    return packed_map(rng, WORDS, {"t": text(tag), **members}, 1)


def _assemble(data: bytes) -> object:
    assembler, given = Assembler(), None
    for part in apart(data):
        with suppress(ProtocolError):
            given = assembler.feed(part)
        _expect(assembler.unfinished <= MAX_OPEN_MESSAGES, "too many open messages")
    return given


def _pieces(rng: Random) -> bytes:
    names = ("__peerData", "n", "total", "data")
    parts: list[bytes] = []

    def small() -> bytes:
        return bytes([rng.randrange(4)])

    for _ in range(rng.randrange(12)):
        raw = pack(rng.randbytes(rng.randrange(40)))
        members: dict[str, bytes] = dict(zip(names, (small(), small(), small(), raw), strict=True))
        if rng.random() < 0.3:
            members[rng.choice(names)] = packed(rng, names, 3)
        parts.append(packed_map(rng, names, members, 3))
    return together(parts)


def _chunk_samples() -> list[bytes]:
    long = {"t": "ai-ask", "text": "x" * 20_000}
    return [together(Chunker().messages(long)), *(together([one]) for one in packed_samples())]


def _receive(data: bytes) -> object:
    clock = VirtualClock()
    receiver = WireReceiver(clock)
    receiver.attach(0)
    receiver.attach(1, lossy=True)
    count = 0
    for number, part in enumerate(apart(data)):
        clock.advance(7.0 * (number % 3))
        given = [*receiver.receive(number % 2, part), *receiver.tick()]
        count += len(given)
        _expect(len(receiver.partial) <= MAX_PARTIALS, "too many partial frames")
        _expect(receiver.held_bytes <= MAX_HELD_BYTES, "too many bytes held")
    receiver.closed(0)
    return count or None


def _slices(rng: Random) -> bytes:
    cuts = [part for number, frame in enumerate(FRAMES, 1) for part in cut(frame, number)]
    rng.shuffle(cuts)
    return together(cuts[: 1 + rng.randrange(len(cuts))])


def _slice_samples() -> list[bytes]:
    return [together(list(itertools.chain.from_iterable(cut(f, n) for n, f in enumerate(FRAMES, 1))))]


def _message(data: bytes) -> object:
    """What was taken can be passed on: a model host's word goes through the creator."""
    raw = read_map(data)
    message = m.decode(raw) if raw is not None else None
    if message is not None:
        told = _without_meta(m.encode(message))
        _expect(_finite(told), f"{told['t']} holds a number that is none")
        try:
            pack(told)
        except ProtocolError as error:
            raise Fault(f"{told['t']} was taken and cannot be passed on: {error}") from error
    return message


def _without_meta(value: object) -> Any:
    """Descriptions of devices are read further before they are passed on."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        return {name: _without_meta(member) for name, member in members.items() if name != "meta"}
    return [_without_meta(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _finite(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_finite, cast("Mapping[str, object]", value).values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, cast("list[object]", value)))
    return not isinstance(value, float) or math.isfinite(value)


def _frame(data: bytes) -> object:
    raw = read_map(data)
    frame = read_frame_message(raw) if raw is not None else None
    if frame is not None:
        cut(frame, 1) if len(frame.control.drop) <= 2 else None
        unpack_halves(frame.payload, 16)
    return frame


def _any_frame(rng: Random) -> bytes:
    names = ("pos", "basePos", "n", "data", "enc", "spec", "reset", "sv", "ld", "rb", "dp")
    valid = frame_message(rng.choice(FRAMES))
    members = {name: pack(value) for name, value in valid.items()}
    for name in names:
        if rng.random() < 0.2:
            members[name] = packed(rng, names, 3)
    return packed_map(rng, names, members | {"t": text(rng.choice(NAMES))}, 3)


def _description(data: bytes) -> object:
    raw = read_map(data) or {}
    meta = read_meta(raw.get("meta"))
    pack(meta_map(meta))
    name = clean_name(raw.get("name"), "device-1")
    odd = {unicodedata.category(c) for c in name + meta.gpu} & {"Cc", "Zl", "Zp"}
    _expect(0 < len(name) <= LONGEST and not odd, f"a name is shown as {name!r}")
    return meta


def _any_description(rng: Random) -> bytes:
    names = (
        "ua", "gpu", "native", "client", "model", "webgpu", "phone", "maxBufGB", "maxBindMB", "contribGB",
        "pledgeMax", "gbps", "ramGB", "dspec", "api", "ctx", "paused",
    )  # fmt: skip
    meta = packed_map(rng, names, {name: packed(rng, names, 4) for name in names if rng.random() < 0.5}, 2)
    return packed_map(rng, names, {"meta": meta, "name": packed(rng, names, 4)}, 1)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise Fault(what)


TARGETS = [
    Target("binarypack", packed_samples, unpack, (ProtocolError,), any_value),
    Target("chunks", _chunk_samples, _assemble, (), _pieces),
    Target("wire", _slice_samples, _receive, (), _slices),
    Target("messages", packed_samples, _message, (ProtocolError,), any_message),
    Target(
        "frame-messages",
        lambda: [pack(frame_message(frame)) for frame in FRAMES],
        _frame,
        (ProtocolError, HalfRangeError),
        _any_frame,
    ),
    Target("description", packed_samples, _description, (ProtocolError,), _any_description),
]
