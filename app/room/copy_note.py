"""What a model host writes beside its copy of a state: the tokens it stands after, and how they were computed."""

from __future__ import annotations

import msgspec
import numpy as np

from app.engine.types import ColumnClass
from app.room.checkpoints import Keep
from app.room.held import Held
from app.room.segments import Fed, Segment


class _Note(msgspec.Struct, frozen=True):
    ids: list[int]
    segments: list[tuple[int, int, str]]
    keep: str
    before: bytes


def pack_note(held: Held, keep: Keep) -> bytes:
    before = held.before(held.end)
    segments = [(s.start, s.end, s.kind.value) for s in held.fed.segments]
    state = b"" if before is None else np.ascontiguousarray(before, "<f4").tobytes()
    return msgspec.msgpack.encode(_Note(list(held.fed.ids), segments, keep.value, state))


def read_note(note: bytes) -> tuple[Held, Keep] | None:
    """None for a note that makes no sense."""
    try:
        read = msgspec.msgpack.decode(note, type=_Note)
        segments = tuple(Segment(start, end, ColumnClass(kind)) for start, end, kind in read.segments)
        before = np.frombuffer(read.before, "<f4").astype(np.float32)
        held = Held(Fed(tuple(read.ids), segments), len(read.ids), before[None] if before.size else None)
        return held, Keep(read.keep)
    except (msgspec.MsgspecError, ValueError):
        return None
