"""Hidden states as the wire's half floats, and the check of their numbers (spec: rooms §5.1, §5.8, §28)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.core.errors import PooledError
from app.engine.types import Floats

LARGEST_HALF = 65_504.0
SAMPLE_STEP = 97

_HALF_INFINITY = 0x7C00
_HALF_NAN = 0x7E00
_SMALLEST_NORMAL = 0x38800000
_FIRST_TO_INFINITY = 0x477FF000
_FLOAT_INFINITY = 0x7F800000
_REBIAS = (127 - 15) << 10


class HalfRangeError(PooledError):
    """A hidden state holds a number that half precision cannot carry."""


def float_to_half(values: Floats) -> NDArray[np.uint16]:
    """Bits of the nearest half floats, ties away from zero; every NaN becomes the quiet one.

    NumPy's own conversion rounds ties to even, which differs from what browsers in a room compute.
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    half = ((magnitude + np.uint32(0x1000)) >> np.uint32(13)) - np.uint32(_REBIAS)
    small = magnitude < _SMALLEST_NORMAL
    if small.any():
        half[small] = _denormals(magnitude[small])
    half[magnitude >= _FIRST_TO_INFINITY] = _HALF_INFINITY
    half[magnitude > _FLOAT_INFINITY] = _HALF_NAN
    return (half | ((bits >> np.uint32(16)) & np.uint32(0x8000))).astype(np.uint16)


def _denormals(magnitude: NDArray[np.uint32]) -> NDArray[np.uint32]:
    steps = magnitude.view(np.float32).astype(np.float64) * 2.0**24
    return np.floor(steps + 0.5).astype(np.uint32)


def half_to_float(bits: NDArray[np.uint16]) -> Floats:
    """The float32 values of half-float bits; exact."""
    return bits.view(np.float16).astype(np.float32)


def pack_halves(states: Floats, place: str) -> bytes:
    """Hidden states [columns, hidden size] as the wire's payload: little-endian halves, column after column.

    ``place`` names what made them, for the error. Raises HalfRangeError for NaN, infinity or a magnitude
    above 65,504.
    """
    # Written as "not <=" so that NaN is caught by the same pass.
    if states.size and not float(np.abs(states).max()) <= LARGEST_HALF:
        raise HalfRangeError(
            f"The numbers of {place} do not fit the connection's half precision.",
            "Try another model file, or run the model on one device.",
        )
    return float_to_half(states).astype("<u2", copy=False).tobytes()


def unpack_halves(payload: bytes, hidden: int) -> Floats:
    """A payload as float32 [columns, ``hidden``]. Raises HalfRangeError when it is not whole columns."""
    if hidden < 1 or len(payload) % (2 * hidden):
        raise HalfRangeError("Another device sent hidden states of another size.", "Deal the layers again.")
    halves = np.frombuffer(payload, dtype="<u2").astype(np.uint16, copy=False)
    return half_to_float(halves).reshape(-1, hidden)


def looks_bad(values: Floats) -> bool:
    """Whether a sample (every 97th value and the last one) holds NaN or infinity; no values are bad too."""
    flat = values.reshape(-1)
    if not flat.size:
        return True
    return not (bool(np.isfinite(flat[::SAMPLE_STEP]).all()) and bool(np.isfinite(flat[-1])))
