"""What each block format becomes: a part for the quants stream, then the parts of the extra stream.

Blocks are [count, bytes]; a part has ``count`` as its first axis and is copied as it lies, so that plain
copies are made once, a field at a time (spec: engine §1.2, checked against the gguf package).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.gguf.types import TensorType

UNIT = 32

# uint8 throughout, loosely typed: the stubs widen it under bit operations with plain numbers.
Bytes = NDArray[Any]
Parts = tuple[Bytes, ...]

_NIBBLE = np.uint32(0x0F0F0F0F)


def _field(b: Bytes, start: int, stop: int) -> Bytes:
    """Bytes ``start`` to ``stop`` of each block as one element: NumPy then moves a block at a time."""
    return np.ndarray(len(b), np.dtype((np.void, stop - start)), b, start, (b.strides[0],))


def _bytes(b: Bytes, start: int, stop: int) -> Bytes:
    """The same, copied: [blocks, stop - start]."""
    return np.array(_field(b, start, stop)).view(np.uint8).reshape(len(b), -1)


def _scale_then_quants(b: Bytes) -> Parts:
    return _field(b, 2, b.shape[1]), _field(b, 0, 2)


def _q4_1(b: Bytes) -> Parts:
    return _field(b, 4, 20), _field(b, 0, 4)


def _q5_0(b: Bytes) -> Parts:
    return _field(b, 6, 22), _field(b, 2, 6), _field(b, 0, 2)


def _q5_1(b: Bytes) -> Parts:
    return _field(b, 8, 24), _field(b, 4, 8), _field(b, 0, 4)


def _k_scales(packed: Bytes) -> Bytes:
    """Twelve bytes of 6-bit scales and minima -> [blocks, 2, 4, 2] bytes (scale, minimum)."""
    low, mid, high = np.ascontiguousarray(packed.view(np.uint32).T)
    top = np.stack([_two(low, 6), _two(mid, 6)])
    later = np.stack([high & _NIBBLE, (high >> np.uint32(4)) & _NIBBLE]) | (top << np.uint32(4))
    first = np.stack([low, mid]) & np.uint32(0x3F3F3F3F)
    both = np.stack([first, later], axis=-1).view(np.uint8).reshape(2, -1)
    return np.ascontiguousarray(both.T).reshape(-1, 2, 4, 2)


def _two(words: Bytes, shift: int) -> Bytes:
    """Two bits from ``shift`` on of every byte."""
    return (words >> np.uint32(shift)) & np.uint32(0x03030303)


def _nibbles(groups: Bytes) -> Bytes:
    """[n, 32] bytes, one value in the low and one in the high nibbles -> [n, 2, 16]: a unit each.

    Byte j of a unit holds value j in its low nibble and j + 16 in the high one. Sixteen bytes move as one element.
    """
    first, last = (np.array(groups.view(np.complex128)[:, i]).view(np.uint32) for i in range(2))
    units = np.empty((len(groups), 2), np.complex128)
    units[:, 0] = ((first & _NIBBLE) | ((last & _NIBBLE) << np.uint32(4))).view(np.complex128)
    units[:, 1] = (((first >> np.uint32(4)) & _NIBBLE) | (last & ~_NIBBLE)).view(np.complex128)
    return units.view(np.uint8).reshape(-1, 2, 16)


def _transposed(groups: Bytes, width: int) -> Bytes:
    """[..., 8 / width, n] -> the same shape: field i of byte j becomes field j of byte i, ``width`` bits a field."""
    count = 8 // width
    planes = np.array(np.moveaxis(groups, -2, 0), order="C")
    words, half = planes.reshape(count, -1).view(np.uint32), 1
    while half < count:
        shift, pairs = np.uint32(half * width), words.reshape(-1, 2, half, words.shape[1])
        low = np.uint32({1: 0x55555555, 2: 0x33333333, 4: 0x0F0F0F0F}[half * width])
        change = ((pairs[:, 0] >> shift) ^ pairs[:, 1]) & low
        pairs[:, 1] ^= change
        pairs[:, 0] ^= change << shift
        half *= 2
    return np.moveaxis(planes, 0, -2)


def _two_bits(qs: Bytes) -> Bytes:
    """64 bytes, 2 bits of four units each -> [blocks, 8, 8]: value 4i + b of a half at bit 2i of its byte b."""
    halves = qs.reshape(-1, 2, 2, 4, 4)
    return _transposed(halves, 2).transpose(0, 1, 3, 2, 4)


def _q2_k(b: Bytes) -> Parts:
    return _two_bits(_bytes(b, 16, 80)), _field(b, 0, 16), _field(b, 80, 84)


def _q3_k(b: Bytes) -> Parts:
    """A unit's third bits: that of value 4i + b is bit i of byte b."""
    third = _transposed(_bytes(b, 0, 32).reshape(-1, 8, 4), 1)
    return _two_bits(_bytes(b, 32, 96)), third, _q3_scales(_bytes(b, 96, 108)), _field(b, 108, 110)


def _q3_scales(packed: Bytes) -> Bytes:
    """Twelve bytes of 6-bit scales, 32 too high -> [blocks, 16] signed bytes."""
    low = np.concatenate([packed[:, :8] & 15, packed[:, :8] >> 4], axis=1)
    high = np.concatenate([(packed[:, 8:] >> shift) & 3 for shift in (0, 2, 4, 6)], axis=1)
    return (low | (high << 4)).view(np.int8) - np.int8(32)


def _q4_k(b: Bytes) -> Parts:
    values = _nibbles(_bytes(b, 16, 144).reshape(-1, 32)).reshape(-1, 128)
    return values, _k_scales(_bytes(b, 4, 16)), _field(b, 0, 4)


def _q5_k(b: Bytes) -> Parts:
    """A unit's fifth bits: value j in bit j."""
    values = _nibbles(_bytes(b, 48, 176).reshape(-1, 32)).reshape(-1, 128)
    fifth = _transposed(_bytes(b, 16, 48).reshape(-1, 4, 8).transpose(0, 2, 1), 1)
    return values, fifth, _k_scales(_bytes(b, 4, 16)), _field(b, 0, 4)


def _q6_k(b: Bytes) -> Parts:
    """A unit's upper bits: four values a byte, the first lowest."""
    values = _nibbles(_bytes(b, 0, 128).reshape(-1, 32)).view(np.complex128).reshape(-1, 2, 2, 2).transpose(0, 1, 3, 2)
    upper = _transposed(_bytes(b, 128, 192).reshape(-1, 2, 8, 4).transpose(0, 1, 3, 2), 2)
    return values, upper, _field(b, 192, 208), _field(b, 208, 210)


def _iq4_xs(b: Bytes) -> Parts:
    """Scales of 6 bits, 32 too high, as signed bytes."""
    high = _bytes(b, 2, 4).view("<u2") >> (2 * np.arange(8, dtype=np.uint16)) & 3
    nibbles = _bytes(b, 4, 8)
    low = np.stack([nibbles & 15, nibbles >> 4], axis=2).reshape(-1, 8)
    return _field(b, 8, 136), (low | (high.astype(np.uint8) << 4)).view(np.int8) - np.int8(32), _field(b, 0, 2)


PACKERS: dict[TensorType, Callable[[Bytes], Parts]] = {
    TensorType.Q4_0: _scale_then_quants,
    TensorType.Q4_1: _q4_1,
    TensorType.Q5_0: _q5_0,
    TensorType.Q5_1: _q5_1,
    TensorType.Q8_0: _scale_then_quants,
    TensorType.Q2_K: _q2_k,
    TensorType.Q3_K: _q3_k,
    TensorType.Q4_K: _q4_k,
    TensorType.Q5_K: _q5_k,
    TensorType.Q6_K: _q6_k,
    TensorType.IQ4_NL: _scale_then_quants,
    TensorType.IQ4_XS: _iq4_xs,
}
