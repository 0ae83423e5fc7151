"""Matrices on the GPU: one binding where it fits, else cut by rows at the binding limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.device import Gpu
from app.engine.gguf import GgufFile, TensorInfo, TensorType
from app.engine.memory import Arena, Slice, aligned, upload
from app.engine.weights.layout import pack, packed_bytes, units


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
class MatrixPlan:
    """Tensors whose rows are joined into one matrix, and how its rows are cut into blocks.

    A matrix that must be cut is never a joined one, except where a cut falls on a tensor's border.
    """

    tensors: tuple[TensorInfo, ...]
    cuts: tuple[tuple[int, int], ...]

    @property
    def kind(self) -> TensorType:
        return self.tensors[0].kind

    @property
    def rows(self) -> int:
        return sum(t.rows for t in self.tensors)

    @property
    def columns(self) -> int:
        return self.tensors[0].columns

    def sizes(self) -> list[int]:
        """Bytes of each stream of each block, in upload order."""
        return [size for lo, hi in self.cuts for size in _stream_sizes(self.kind, hi - lo, self.columns)]


def plan_matrix(tensors: Sequence[TensorInfo], binding: int) -> MatrixPlan:
    """Joins ``tensors`` (same type and columns) and cuts rows so that no stream passes ``binding`` bytes."""
    rows = sum(t.rows for t in tensors)
    per_row = max(_stream_sizes(tensors[0].kind, 256, tensors[0].columns)) / 256
    most = max(int(binding / per_row) // 64 * 64 - 64, 64)
    cuts = tuple((lo, min(lo + most, rows)) for lo in range(0, rows, most))
    return MatrixPlan(tuple(tensors), cuts)


def joinable(tensors: Sequence[TensorInfo]) -> bool:
    """Whether rows of these tensors can form one matrix."""
    return len({(t.kind, t.columns) for t in tensors}) == 1


def load_matrix(gpu: Gpu, file: GgufFile, plan: MatrixPlan, arena: Arena) -> Matrix:
    """Reads, rearranges and uploads a planned matrix, a block at a time."""
    blocks: list[Block] = []
    for lo, hi in plan.cuts:
        packed = pack(plan.kind, _read_rows(file, plan.tensors, lo, hi), hi - lo, plan.columns)
        streams: list[Slice] = []
        for data in (packed.quants, packed.extra):
            if data.size:
                streams.append(arena.take(data.nbytes))
                upload(gpu, streams[-1], data)
        blocks.append(Block(plan.kind, lo, hi - lo, plan.columns, tuple(streams)))
    return Matrix(plan.kind, plan.rows, plan.columns, tuple(blocks))


def _read_rows(file: GgufFile, tensors: Sequence[TensorInfo], lo: int, hi: int) -> np.ndarray:
    pieces: list[np.ndarray] = []
    start = 0
    for tensor in tensors:
        first, last = max(lo - start, 0), min(hi - start, tensor.rows)
        if first < last:
            pieces.append(file.read(tensor, first, last - first))
        start += tensor.rows
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _stream_sizes(kind: TensorType, rows: int, columns: int) -> list[int]:
    return [aligned(size) for size in packed_bytes(kind, rows, columns) if size]
