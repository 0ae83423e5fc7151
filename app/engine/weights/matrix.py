"""Matrices on the GPU: one binding where it fits, else cut by rows at the binding limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.errors import ModelError
from app.engine.device import Gpu
from app.engine.gguf import GgufFile, TensorInfo, TensorType
from app.engine.gguf.types import row_bytes
from app.engine.memory import Arena, Slice, aligned, upload
from app.engine.weights.layout import GRANULE, pack, packed_bytes, placed, units

_PIECE_BYTES = 8 << 20
_SLACK = 0.99
"""Sections of a stream are padded to whole words, streams to 256 bytes."""


@dataclass(frozen=True)
class Block:
    """Rows ``first`` to ``first + rows`` of a matrix in one binding."""

    kind: TensorType
    first: int
    rows: int
    columns: int
    streams: tuple[Slice, ...]

    @property
    def units(self) -> int:
        return units(self.columns)


@dataclass(frozen=True)
class Matrix:
    """[rows, columns] weights of one type."""

    kind: TensorType
    rows: int
    columns: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Rows:
    """Rows ``first`` to ``first + count`` of a tensor."""

    tensor: TensorInfo
    first: int
    count: int


@dataclass(frozen=True)
class MatrixPlan:
    """Rows of tensors that are joined into one matrix, in this order, and how the matrix is cut into blocks."""

    rows_of: tuple[Rows, ...]
    cuts: tuple[tuple[int, int], ...]

    @property
    def kind(self) -> TensorType:
        return self.rows_of[0].tensor.kind

    @property
    def rows(self) -> int:
        return sum(part.count for part in self.rows_of)

    @property
    def columns(self) -> int:
        return self.rows_of[0].tensor.columns

    def bytes_of(self, rows: int) -> int:
        """Bytes of ``rows`` rows, all streams."""
        return sum(_stream_sizes(self.kind, rows, self.columns))

    def sizes(self) -> list[int]:
        """Bytes of each stream of each block, in upload order."""
        return [size for lo, hi in self.cuts for size in _stream_sizes(self.kind, hi - lo, self.columns)]


def whole(tensor: TensorInfo) -> list[Rows]:
    """All rows of a tensor."""
    return [Rows(tensor, 0, tensor.rows)]


def plan_matrix(rows_of: Sequence[Rows], binding: int, granule: int = 64) -> MatrixPlan:
    """Joins rows (same type and columns) and cuts them so that no stream passes ``binding`` bytes.

    Blocks hold whole granules of rows: an expert's must stay together. ModelError if one granule is too large.
    """
    rows, tensor = sum(part.count for part in rows_of), rows_of[0].tensor
    per_row = max(_stream_sizes(tensor.kind, 256, tensor.columns)) / 256
    most = int(binding / per_row * _SLACK) // granule * granule
    if most < granule:
        raise ModelError(
            f"{tensor.name} does not fit into this GPU's bindings of {binding >> 20} MB.", "Pick another model."
        )
    return MatrixPlan(tuple(rows_of), tuple((lo, min(lo + most, rows)) for lo in range(0, rows, most)))


def joinable(tensors: Sequence[TensorInfo]) -> bool:
    """Whether rows of these tensors can form one matrix."""
    return len({(t.kind, t.columns) for t in tensors}) == 1


def take_streams(plan: MatrixPlan, rows: int, arena: Arena) -> tuple[Slice, ...]:
    """Room for one block of a planned matrix; blocks come in the order of ``MatrixPlan.sizes``."""
    return tuple(arena.take(size) for size in packed_bytes(plan.kind, rows, plan.columns) if size)


def load_block(gpu: Gpu, file: GgufFile, plan: MatrixPlan, lo: int, hi: int, streams: Sequence[Slice]) -> Block:
    """Reads, rearranges and uploads rows ``lo`` to ``hi``, so few at a time that their memory is used again."""
    each = max(_PIECE_BYTES // row_bytes(plan.kind, plan.columns) // GRANULE, 1) * GRANULE
    for first in range(lo, hi, each):
        rows = min(each, hi - first)
        piece = pack(plan.kind, _read_rows(file, plan.rows_of, first, first + rows), rows, plan.columns)
        for stream, start, data in placed(plan.kind, piece, first - lo, hi - lo, plan.columns):
            upload(gpu, streams[stream], data, start)
    return Block(plan.kind, lo, hi - lo, plan.columns, tuple(streams))


def _read_rows(file: GgufFile, rows_of: Sequence[Rows], lo: int, hi: int) -> np.ndarray:
    each, start = row_bytes(rows_of[0].tensor.kind, rows_of[0].tensor.columns), 0
    raw = np.empty((hi - lo) * each, np.uint8)
    for part in rows_of:
        first, last = max(lo - start, 0), min(hi - start, part.count)
        if first < last:
            at = (start + first - lo) * each
            file.read_into(part.tensor, part.first + first, raw[at : at + (last - first) * each])
        start += part.count
    return raw


def _stream_sizes(kind: TensorType, rows: int, columns: int) -> list[int]:
    return [aligned(size) for size in packed_bytes(kind, rows, columns) if size]
