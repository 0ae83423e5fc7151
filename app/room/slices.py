"""The hidden-state wire's slices: a 32-byte header and up to 4,568 payload bytes (spec: rooms §5.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from app.core.errors import ProtocolError
from app.room.frame import DROP_ALL, Control, Frame, FrameKind

MAGIC = 0x5357
HEADER = struct.Struct(">HBBIIHHHHIHHHH")
SLICE_PAYLOAD = 4_568
LONGEST_SLICE = HEADER.size + SLICE_PAYLOAD
MAX_ROLLBACK = 62
MAX_COLUMNS = 0xFFFF
MAX_SLICES = 0xFFFF
_WORD = 0xFFFFFFFF

_SPEC, _RESET = 1, 2


@dataclass(frozen=True)
class Slice:
    """One slice as read; a frame repeats its flags, position, columns and control words in each."""

    kind: FrameKind
    flags: int
    frame_id: int
    position: int
    columns: int
    index: int
    count: int
    total: int
    save: int
    load: int
    drop: tuple[int, ...]
    payload: bytes


def slice_count(total: int) -> int:
    """How many slices ``total`` payload bytes take; an empty frame still takes one."""
    return max(1, -(-total // SLICE_PAYLOAD))


def cut(frame: Frame, frame_id: int) -> list[bytes]:
    """The slices of one frame, in order. Raises ProtocolError for control words the header cannot hold."""
    flags, words = pack_flags(frame), pack_control(frame.control)
    total = len(frame.payload)
    count = slice_count(total)
    if not (0 <= frame.position <= _WORD and 1 <= frame.columns <= MAX_COLUMNS and count <= MAX_SLICES):
        raise ProtocolError("A frame of hidden states is out of range.")
    return [
        HEADER.pack(MAGIC, frame.kind, flags, frame_id, frame.position, frame.columns, index, count, 0, total, *words)
        + frame.payload[index * SLICE_PAYLOAD : (index + 1) * SLICE_PAYLOAD]
        for index in range(count)
    ]


def read_slice(data: bytes) -> Slice | None:
    """The slice in ``data``, or None when it is none: too short, other magic, impossible counts or length."""
    if len(data) < HEADER.size:
        return None
    magic, kind, flags, frame_id, position, columns, index, count, _, total, save, load, *drop = HEADER.unpack(
        data[: HEADER.size]
    )
    if magic != MAGIC or kind > FrameKind.RETURN_BATCH or count != slice_count(total) or index >= count:
        return None
    payload = data[HEADER.size :]
    if len(payload) != min(SLICE_PAYLOAD, total - index * SLICE_PAYLOAD):
        return None
    return Slice(
        FrameKind(kind),
        flags,
        frame_id,
        position,
        columns,
        index,
        count,
        total,
        save,
        load,
        _drops(drop),
        payload,
    )


def _drops(words: list[int]) -> tuple[int, ...]:
    return (DROP_ALL,) if DROP_ALL in words else tuple(word for word in words if word)


def pack_flags(frame: Frame) -> int:
    """The flags byte. Raises ProtocolError for a rollback column outside 0..62."""
    control = frame.control
    rollback = 0
    if control.rollback is not None:
        if not 0 <= control.rollback <= MAX_ROLLBACK:
            raise ProtocolError(f"Column {control.rollback} cannot be rolled back to.")
        rollback = control.rollback + 1
    return (_SPEC if frame.spec else 0) | (_RESET if control.reset else 0) | rollback << 2


def pack_control(control: Control) -> tuple[int, int, int, int]:
    """The header's save, load and two drop words.

    Raises ProtocolError for slots outside 0..65,535 and for more than two drops.
    """
    drop = (DROP_ALL,) if DROP_ALL in control.drop else control.drop
    if not all(0 <= slot <= 0xFFFF for slot in (control.save, control.load)):
        raise ProtocolError("A checkpoint slot is out of range.")
    if len(drop) > 2 or not all(1 <= slot <= 0xFFFF for slot in drop):
        raise ProtocolError("These checkpoint slots cannot be dropped with one frame.")
    first, second = (*drop, 0, 0)[:2]
    return control.save, control.load, first, second


def read_control(flags: int, save: int, load: int, drop: tuple[int, ...]) -> Control:
    """The control words of a frame from its flags byte and header words."""
    rollback = (flags >> 2) - 1
    return Control(bool(flags & _RESET), rollback if rollback >= 0 else None, save, load, drop)


def is_spec(flags: int) -> bool:
    return bool(flags & _SPEC)
