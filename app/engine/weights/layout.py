"""GGUF blocks rearranged into streams, bit for bit the same numbers (spec: engine §1.2, wgpu §3).

A row is cut into *units* of 32 values. The ``quants`` stream holds a whole number of 16-byte words a
unit; what does not fit that shape (scales, minima, high bits) goes into the ``extra`` stream, one
section after another, each section padded to four bytes. Rows of plain floats are padded with zeros
to whole units. The reader of each layout is the ``.wgsl`` file of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.gguf.types import BLOCKS, TensorType

UNIT = 32

# uint8 throughout, loosely typed: the stubs widen it under bit operations with plain numbers.
Bytes = NDArray[Any]


@dataclass(frozen=True)
class Packed:
    """The two streams of a matrix; ``extra`` is empty for plain floats."""

    quants: Bytes
    extra: Bytes

    @property
    def nbytes(self) -> int:
        return self.quants.nbytes + self.extra.nbytes


def units(columns: int) -> int:
    """Units of a row of ``columns`` values."""
    return -(-columns // UNIT)


def packed_bytes(kind: TensorType, rows: int, columns: int) -> tuple[int, int]:
    """Bytes of the quants and the extra stream of a matrix; sections are whole words, hence the four."""
    count = rows * units(columns)
    quants, extra = _UNIT_BYTES[kind]
    return int(count * quants), int(count * extra) + (4 if extra else 0)


# (quants, extra) bytes a unit.
_UNIT_BYTES: dict[TensorType, tuple[float, float]] = {
    TensorType.F32: (128, 0),
    TensorType.F16: (64, 0),
    TensorType.BF16: (64, 0),
    TensorType.Q4_0: (16, 2),
    TensorType.Q4_1: (16, 4),
    TensorType.Q5_0: (16, 6),
    TensorType.Q5_1: (16, 8),
    TensorType.Q8_0: (32, 2),
    TensorType.Q4_K: (16, 2.5),
    TensorType.Q5_K: (16, 6.5),
    TensorType.Q6_K: (16, 10.25),
}


def unit_words(kind: TensorType) -> int:
    """32-bit words of a unit in the quants stream."""
    return int(_UNIT_BYTES[kind][0]) // 4


def pack(kind: TensorType, raw: Bytes, rows: int, columns: int) -> Packed:
    """Rearranges ``rows`` x ``columns`` values in GGUF bytes."""
    if BLOCKS[kind].values == 1:
        return Packed(_padded_rows(raw.reshape(rows, -1), columns, BLOCKS[kind].bytes), _EMPTY)
    blocks = raw.reshape(-1, BLOCKS[kind].bytes)
    return _PACKERS[kind](blocks)


_EMPTY = np.empty(0, np.uint8)


def _padded_rows(rows: Bytes, columns: int, width: int) -> Bytes:
    missing = (units(columns) * UNIT - columns) * width
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, missing))) if missing else rows).reshape(-1)


def _stream(*sections: Bytes) -> Bytes:
    """Joins sections, each padded to whole 32-bit words."""
    flat = [np.ascontiguousarray(s).reshape(-1).view(np.uint8) for s in sections]
    return np.concatenate([np.pad(s, (0, -s.size % 4)) for s in flat])


def _flat(part: Bytes) -> Bytes:
    return np.ascontiguousarray(part).reshape(-1)


def _scale_then_quants(b: Bytes) -> Packed:
    return Packed(_flat(b[:, 2:]), _stream(b[:, :2]))


def _q4_1(b: Bytes) -> Packed:
    return Packed(_flat(b[:, 4:]), _stream(b[:, :4]))


def _q5_0(b: Bytes) -> Packed:
    return Packed(_flat(b[:, 6:]), _stream(b[:, 2:6], b[:, :2]))


def _q5_1(b: Bytes) -> Packed:
    return Packed(_flat(b[:, 8:]), _stream(b[:, 4:8], b[:, :4]))


def _k_scales(packed: Bytes) -> Bytes:
    """Twelve bytes of 6-bit scales and minima -> [blocks, 8, 2] bytes (scale, minimum)."""
    low, mid, high = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scale = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1)
    minimum = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=1)
    return np.stack([scale, minimum], axis=2)


def _join_nibbles(values: Bytes) -> Bytes:
    """[units, 32] values below 16 -> [units, 16] bytes: j in the low nibble, j + 16 in the high one."""
    return values[:, :16] | (values[:, 16:] << 4)


def _join_bits(bits: Bytes) -> Bytes:
    """[units, 32] zeros and ones -> [units, 4] bytes, value j in bit j."""
    return np.packbits(bits, axis=1, bitorder="little")


def _k_nibbles(qs: Bytes) -> Bytes:
    """128 bytes in four groups of 64 values -> [blocks * 8, 32] values below 16."""
    groups = qs.reshape(-1, 4, 32)
    return np.stack([groups & 15, groups >> 4], axis=2).reshape(-1, UNIT)


def _q4_k(b: Bytes) -> Packed:
    values = _join_nibbles(_k_nibbles(b[:, 16:]))
    return Packed(_flat(values), _stream(_k_scales(b[:, 4:16]), b[:, :4]))


def _q5_k(b: Bytes) -> Packed:
    values = _join_nibbles(_k_nibbles(b[:, 48:]))
    high = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1
    return Packed(_flat(values), _stream(_join_bits(high.reshape(-1, UNIT)), _k_scales(b[:, 4:16]), b[:, :4]))


def _q6_k(b: Bytes) -> Packed:
    ql, qh = b[:, :128].reshape(-1, 2, 2, 32), b[:, 128:192].reshape(-1, 2, 1, 32)
    low = np.stack([ql & 15, ql >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = (qh >> np.array([0, 2, 4, 6], np.uint8)[None, None, :, None]) & 3
    pairs = high.reshape(-1, 8, 4)
    two_bits = pairs[..., 0] | (pairs[..., 1] << 2) | (pairs[..., 2] << 4) | (pairs[..., 3] << 6)
    values = _join_nibbles(low.reshape(-1, UNIT))
    return Packed(_flat(values), _stream(two_bits, b[:, 192:208], b[:, 208:]))


_PACKERS: dict[TensorType, Callable[[Bytes], Packed]] = {
    TensorType.Q4_0: _scale_then_quants,
    TensorType.Q4_1: _q4_1,
    TensorType.Q5_0: _q5_0,
    TensorType.Q5_1: _q5_1,
    TensorType.Q8_0: _scale_then_quants,
    TensorType.Q4_K: _q4_k,
    TensorType.Q5_K: _q5_k,
    TensorType.Q6_K: _q6_k,
}
