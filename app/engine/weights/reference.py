"""Block formats in NumPy, for the op references and the embedding checks (spec: engine §1.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.weights.layout import UNIT, Bytes, Packed, pack, units

Matrix = NDArray[np.float32]


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


def _scaled(kind: TensorType, packed: Packed, count: int) -> NDArray[np.float64]:
    if kind is TensorType.Q8_0:
        scale = _halves(packed.extra, 0, count)
        return packed.quants.view(np.int8).reshape(count, UNIT) * scale[:, None]
    scale, offset = _affine(kind, packed, count)
    return _integers(kind, packed, count) * scale + offset


def _integers(kind: TensorType, packed: Packed, count: int) -> NDArray[np.float64]:
    quants = packed.quants.reshape(count, 16)
    values = np.concatenate([quants & 15, quants >> 4], axis=1).astype(np.float64)
    if kind in (TensorType.Q5_0, TensorType.Q5_1, TensorType.Q5_K):
        bits = np.unpackbits(packed.extra[: 4 * count].reshape(count, 4), axis=1, bitorder="little")
        return values + 16.0 * bits
    if kind is TensorType.Q6_K:
        two = packed.extra[: 8 * count].reshape(count, 8, 1) >> np.array([0, 2, 4, 6], np.uint8) & 3
        return values + 16.0 * two.reshape(count, UNIT)
    return values


def _affine(kind: TensorType, packed: Packed, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        return _q6_affine(extra, count)
    return _k_affine(extra, 0 if kind is TensorType.Q4_K else 4 * count, count)


def _q6_affine(extra: Bytes, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scales = extra[8 * count : 10 * count].view(np.int8).reshape(count, 2).astype(np.float64)
    supers = _halves(extra, 8 * count + -(-2 * count // 4) * 4, count // 8)
    scale = np.repeat(scales * np.repeat(supers, 8)[:, None], 16, axis=1)
    return scale, -32.0 * scale


def _k_affine(extra: Bytes, start: int, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    small = extra[start : start + 2 * count].reshape(count, 2).astype(np.float64)
    supers = _halves(extra, start + -(-2 * count // 4) * 4, count // 4).reshape(-1, 2)
    per_unit = np.repeat(supers, 8, axis=0) * small
    return per_unit[:, :1], -per_unit[:, 1:]


def _halves(extra: Bytes, start: int, count: int) -> NDArray[np.float64]:
    return extra[start : start + 2 * count].view(np.float16).astype(np.float64)
