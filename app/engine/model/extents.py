"""Which bytes of a model's files a part of it reads, so that no others need to be there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.engine.arch import read_config
from app.engine.gguf import GgufFile, TensorInfo, identity_extents
from app.engine.gguf.types import BLOCKS
from app.engine.model.plan import WeightPlan, plan_weights
from app.engine.types import Part

Extent = tuple[int, int]
"""From a byte to the one after the last."""

_ANY_BINDING = 1 << 31
"""How matrices are cut does not change which tensors they are made of."""


def part_extents(file: GgufFile, part: Part) -> dict[Path, list[Extent]]:
    """Headers, the bytes that name the file, and one extent a tensor, in file order.

    Raises ModelError for a part that the model does not have, or cannot be loaded from this file.
    """
    found = {path: [(0, file.header_bytes(path)), *identity_extents(path.stat().st_size)] for path in file.parts}
    for tensor in _tensors_of(file, part):
        found[tensor.part].append(_extent(tensor))
    return {path: sorted(set(extents)) for path, extents in found.items()}


def tensor_extents(file: GgufFile) -> dict[Path, list[Extent]]:
    """Every tensor's bytes, in file order, but for those of types nobody can load here."""
    found: dict[Path, list[Extent]] = {path: [] for path in file.parts}
    for tensor in file.tensors.values():
        if tensor.code in BLOCKS:
            found[tensor.part].append(_extent(tensor))
    return {path: sorted(extents) for path, extents in found.items()}


def _extent(tensor: TensorInfo) -> Extent:
    return tensor.offset, tensor.offset + tensor.nbytes


def _tensors_of(file: GgufFile, part: Part) -> Iterator[TensorInfo]:
    """What the plan joins to matrices, and beside them the vectors of the same blocks and of none."""
    config = read_config(file)
    plan = plan_weights(file, config, part, _ANY_BINDING)
    planned = {rows.tensor.name for matrix in plan.matrices() for rows in matrix.rows_of}
    blocks = _blocks(plan)
    for name, tensor in file.tensors.items():
        beside = tensor.code in BLOCKS and (_block_of(name) in blocks if _block_of(name) else len(tensor.shape) == 1)
        if name in planned or beside:
            yield tensor


def _blocks(plan: WeightPlan) -> frozenset[str]:
    drafts = [plan.draft.layer.index] if plan.draft else []
    return frozenset(f"blk.{index}" for index in [*(layer.index for layer in plan.layers), *drafts])


def _block_of(name: str) -> str:
    """ "blk.7" of a block's tensor, "" of one that belongs to none."""
    return ".".join(name.split(".")[:2]) if name.startswith("blk.") else ""
