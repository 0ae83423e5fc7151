"""Block formats in NumPy, for the op references and the embedding checks (spec: engine §1.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.weights.layout import UNIT, Bytes, Packed, pack, units

Matrix = NDArray[np.float32]
Floats = NDArray[np.float64]

IQ4_TABLE = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float64)
"""The numbers that the sixteen codes of IQ4_NL and IQ4_XS stand for."""


def dequantise(kind: TensorType, raw: Bytes, rows: int, columns: int) -> Matrix:
    """[rows, columns] float32 values of GGUF bytes, read through the packed streams."""
    packed = pack(kind, raw, rows, columns)
    if BLOCKS[kind].values == 1:
        return _floats(kind, packed).reshape(rows, -1)[:, :columns]
    count = rows * units(columns)
    return _scaled(kind, packed, count).astype(np.float32).reshape(rows, columns)


def _floats(kind: TensorType, packed: Packed) -> Matrix:
    if kind is TensorType.F32:
        return packed.quants.view(np.float32)
    if kind is TensorType.F16:
        return packed.quants.view(np.float16).astype(np.float32)
    return (packed.quants.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _scaled(kind: TensorType, packed: Packed, count: int) -> Floats:
    if kind is TensorType.Q8_0:
        scale = _halves(packed.extra, 0, count)
        return packed.quants.view(np.int8).reshape(count, UNIT) * scale[:, None]
    scale, offset = _affine(kind, packed, count)
    return _integers(kind, packed, count) * scale + offset


def _integers(kind: TensorType, packed: Packed, count: int) -> Floats:
    if kind in (TensorType.Q2_K, TensorType.Q3_K):
        return _small_integers(kind, packed, count)
    quants = packed.quants.reshape(count, 16)
    values = np.concatenate([quants & 15, quants >> 4], axis=1).astype(np.float64)
    if kind in (TensorType.Q5_0, TensorType.Q5_1, TensorType.Q5_K):
        bits = np.unpackbits(packed.extra[: 4 * count].reshape(count, 4), axis=1, bitorder="little")
        return values + 16.0 * bits
    if kind is TensorType.Q6_K:
        two = packed.extra[: 8 * count].reshape(count, 8, 1) >> np.array([0, 2, 4, 6], np.uint8) & 3
        return values + 16.0 * two.reshape(count, UNIT)
    if kind in (TensorType.IQ4_NL, TensorType.IQ4_XS):
        return IQ4_TABLE[values.astype(np.intp)]
    return values


def _small_integers(kind: TensorType, packed: Packed, count: int) -> Floats:
    """Value 4i + b of half h: bits 2i of byte b of the half, for Q3_K with bit 4h + i of the extra byte b above."""
    values = packed.quants.reshape(count, 2, 1, 4) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    if kind is TensorType.Q3_K:
        third = packed.extra[: 4 * count].reshape(count, 1, 1, 4) >> np.arange(8, dtype=np.uint8).reshape(2, 4, 1) & 1
        values = values + 4 * third
    return values.reshape(count, UNIT).astype(np.float64)


def _affine(kind: TensorType, packed: Packed, count: int) -> tuple[Floats, Floats]:
    """Scale and offset of each unit, broadcastable over its 32 values."""
    extra = packed.extra
    if kind is TensorType.Q4_0:
        scale = _halves(extra, 0, count)
        return scale[:, None], -8.0 * scale[:, None]
    if kind is TensorType.Q5_0:
        scale = _halves(extra, 4 * count, count)
        return scale[:, None], -16.0 * scale[:, None]
    if kind in (TensorType.Q4_1, TensorType.Q5_1):
        start = 0 if kind is TensorType.Q4_1 else 4 * count
        pairs = _halves(extra, start, 2 * count).reshape(count, 2)
        return pairs[:, :1], pairs[:, 1:]
    if kind is TensorType.Q6_K:
        return _halves_affine(extra, 8 * count, count, -32.0)
    if kind is TensorType.Q3_K:
        return _halves_affine(extra, 4 * count, count, -4.0)
    if kind is TensorType.Q2_K:
        return _q2_affine(extra, count)
    if kind is TensorType.IQ4_NL:
        return _halves(extra, 0, count)[:, None], np.zeros((count, 1))
    if kind is TensorType.IQ4_XS:
        return _iq4_xs_scales(extra, count), np.zeros((count, 1))
    return _k_affine(extra, 0 if kind is TensorType.Q4_K else 4 * count, count)


def _halves_affine(extra: Bytes, start: int, count: int, offset: float) -> tuple[Floats, Floats]:
    """Signed scales of the halves of units, times one of eight units; ``offset`` is added to the numbers."""
    scales = extra[start : start + 2 * count].view(np.int8).reshape(count, 2).astype(np.float64)
    supers = _halves(extra, start + 2 * count, count // 8)
    scale = np.repeat(scales * np.repeat(supers, 8)[:, None], 16, axis=1)
    return scale, offset * scale


def _q2_affine(extra: Bytes, count: int) -> tuple[Floats, Floats]:
    small = extra[: 2 * count].reshape(count, 2)
    supers = np.repeat(_halves(extra, 2 * count, count // 4).reshape(-1, 2), 8, axis=0)
    scale, minimum = supers[:, :1] * (small & 15), supers[:, 1:] * (small >> 4)
    return np.repeat(scale, 16, axis=1), -np.repeat(minimum, 16, axis=1)


def _iq4_xs_scales(extra: Bytes, count: int) -> Floats:
    supers = np.repeat(_halves(extra, count, count // 8), 8)
    return (extra[:count].view(np.int8) * supers)[:, None]


def _k_affine(extra: Bytes, start: int, count: int) -> tuple[Floats, Floats]:
    small = extra[start : start + 2 * count].reshape(count, 2).astype(np.float64)
    supers = _halves(extra, start + -(-2 * count // 4) * 4, count // 4).reshape(-1, 2)
    per_unit = np.repeat(supers, 8, axis=0) * small
    return per_unit[:, :1], -per_unit[:, 1:]


def _halves(extra: Bytes, start: int, count: int) -> Floats:
    return extra[start : start + 2 * count].view(np.float16).astype(np.float64)
