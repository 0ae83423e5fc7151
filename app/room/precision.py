"""How hidden states are written on the way between devices: the protocol's halves, or whole floats among ours."""

from __future__ import annotations

from enum import Enum

import numpy as np

from app.engine.types import Floats
from app.room.halves import HalfRangeError, pack_halves, unpack_halves

FLOAT_BYTES = 4


class Precision(Enum):
    """The value is the word for it in messages. Whole floats cost twice the bytes, and a cut then rounds nothing."""

    HALF = "f16"
    FULL = "f32"

    def pack(self, states: Floats, place: str) -> bytes:
        """A frame's payload, column after column; HalfRangeError for numbers that do not fit or are none."""
        if self is Precision.HALF:
            return pack_halves(states, place)
        if states.size and not bool(np.isfinite(states).all()):
            raise HalfRangeError(f"{place} computed numbers that are none.", "Try another model file.")
        return np.ascontiguousarray(states, dtype="<f4").tobytes()

    def unpack(self, payload: bytes, hidden: int) -> Floats:
        """A payload as float32 [columns, ``hidden``]; HalfRangeError when it is not whole columns."""
        if self is Precision.HALF:
            return unpack_halves(payload, hidden)
        if hidden < 1 or len(payload) % (FLOAT_BYTES * hidden):
            raise HalfRangeError("Another device sent hidden states of another size.", "Deal the layers again.")
        return np.frombuffer(payload, dtype="<f4").astype(np.float32).reshape(-1, hidden)


def read_precision(word: str) -> Precision | None:
    """None for a word we do not know."""
    return next((each for each in Precision if each.value == word), None)
