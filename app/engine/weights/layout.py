"""GGUF blocks rearranged into streams, bit for bit the same numbers (spec: engine §1.2, wgpu §3).

A row is cut into *units* of 32 values. The ``quants`` stream holds the same number of bytes a unit, 16 or
a multiple, 8 for numbers of two bits; what does not fit that shape (scales, minima, high bits) goes into
the ``extra`` stream, one section after another, each section padded to four bytes. Rows of plain floats
are padded with zeros to whole units. The reader of each layout is the ``.wgsl`` file of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.weights.packers import PACKERS, UNIT, Bytes

__all__ = ["GRANULE", "UNIT", "Bytes", "Packed", "pack", "packed_bytes", "placed", "unit_words", "units"]

_CHUNK_VALUES = 1 << 19
"""Values rearranged at a time: what is between the steps stays in a processor's cache."""


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


def stride(size: int) -> int:
    """Floats between columns of an activation: whole units, so that padded weights meet zeros."""
    return units(size) * UNIT


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
    TensorType.Q2_K: (8, 2.5),
    TensorType.Q3_K: (8, 6.25),
    TensorType.Q4_K: (16, 2.5),
    TensorType.Q5_K: (16, 6.5),
    TensorType.Q6_K: (16, 10.25),
    TensorType.IQ4_NL: (16, 2),
    TensorType.IQ4_XS: (16, 1.25),
}


def unit_words(kind: TensorType) -> int:
    """32-bit words of a unit in the quants stream: two, four or a multiple of four."""
    return int(_UNIT_BYTES[kind][0]) // 4


def pack(kind: TensorType, raw: Bytes, rows: int, columns: int) -> Packed:
    """Rearranges ``rows`` x ``columns`` values in GGUF bytes."""
    block = BLOCKS[kind]
    if block.values == 1:
        return Packed(_padded_rows(raw.reshape(rows, -1), columns, block.bytes), _EMPTY)
    blocks, step, sizes = raw.reshape(-1, block.bytes), _CHUNK_VALUES // block.values, _part_sizes(kind)
    quants, extra = np.empty(len(blocks) * sizes[0], np.uint8), np.zeros(_sections(sizes, len(blocks))[-1], np.uint8)
    targets = [quants, *(extra[start:] for start in _sections(sizes, len(blocks))[:-1])]
    for first in range(0, len(blocks), step):
        parts = PACKERS[kind](blocks[first : first + step])
        for target, size, part in zip(targets, sizes, parts, strict=True):
            np.ndarray(part.shape, part.dtype, target, first * size)[...] = part
    return Packed(quants, extra)


def placed(kind: TensorType, piece: Packed, first: int, rows: int, columns: int) -> Iterator[tuple[int, int, Bytes]]:
    """Where rows from ``first`` on, packed by themselves, lie in a matrix of ``rows``: (stream, byte, data).

    ``first`` is a multiple of ``GRANULE``, so that every part begins with a whole word.
    """
    if BLOCKS[kind].values == 1:
        yield 0, first * units(columns) * unit_words(kind) * 4, piece.quants
        return
    each, sizes = columns // BLOCKS[kind].values, _part_sizes(kind)
    count = piece.quants.size // sizes[0]
    yield 0, first * each * sizes[0], piece.quants
    starts = zip(_sections(sizes, count), _sections(sizes, rows * each), sizes[1:], strict=False)
    for source, target, size in starts:
        yield 1, target + first * each * size, piece.extra[source : source + count * size]


GRANULE = 4
"""Rows whose parts are whole words whatever the format."""

_EMPTY = np.empty(0, np.uint8)


@cache
def _part_sizes(kind: TensorType) -> list[int]:
    """Bytes of a block's parts."""
    return [part.nbytes for part in PACKERS[kind](np.zeros((1, BLOCKS[kind].bytes), np.uint8))]


def _sections(sizes: list[int], blocks: int) -> list[int]:
    """Where the sections of the extra stream begin, and its end: each is padded to whole 32-bit words."""
    starts = [0]
    for size in sizes[1:]:
        starts.append(starts[-1] + -(-blocks * size // 4) * 4)
    return starts


def _padded_rows(rows: Bytes, columns: int, width: int) -> Bytes:
    missing = (units(columns) * UNIT - columns) * width
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, missing))) if missing else rows).reshape(-1)
