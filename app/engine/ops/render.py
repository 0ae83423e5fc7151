"""Turns templates into WGSL. Rendering happens only here and only in Python (design: ops)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import Template

from app.engine.gguf.types import BLOCKS, TensorType

_WEIGHTS = Path(__file__).parent.parent / "weights"
_OPS = Path(__file__).parent

COLUMN_STRUCT = """
struct Column {
    token: u32,
    position: u32,
    kv_row: u32,
    state: u32,
    live: u32,
    flags: u32,
    spare_a: u32,
    spare_b: u32,
}
"""


@cache
def template(name: str) -> Template:
    """The template ``ops/NAME``."""
    return Template((_OPS / name).read_text(encoding="utf-8"))


@cache
def unit_reader(kind: TensorType) -> str:
    """WGSL of ``unit_weights(unit)`` for a block format; needs ``quants``, ``extra`` and ``ALL_UNITS``."""
    own = (_WEIGHTS / f"{kind.name.lower()}.wgsl").read_text(encoding="utf-8")
    if BLOCKS[kind].values == 1:
        return own
    return (_WEIGHTS / "_nibbles.wgsl").read_text(encoding="utf-8") + own


def weight_bindings(kind: TensorType, first: int) -> str:
    """Declarations of a matrix's streams from binding ``first`` on."""
    quants = f"@group(0) @binding({first}) var<storage, read> quants: array<vec4<u32>>;\n"
    if BLOCKS[kind].values == 1:
        return quants
    return quants + f"@group(0) @binding({first + 1}) var<storage, read> extra: array<u32>;\n"


def unrolled(count: int, line: Callable[[int], str]) -> str:
    """``line(0)`` to ``line(count - 1)``: private arrays are never indexed by a variable (spec: wgpu §5)."""
    return "\n".join(line(i) for i in range(count))
