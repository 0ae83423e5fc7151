"""Turns templates into WGSL. Rendering happens only here and only in Python (design: ops)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import Template

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.weights.layout import unit_words

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
    replay: u32,
    count: u32,
}
"""


@cache
def template(name: str) -> Template:
    """The template ``ops/NAME``."""
    return Template((_OPS / name).read_text(encoding="utf-8"))


def weight_bindings(kind: TensorType, first: int, *, wide: bool) -> str:
    """Declarations of a matrix's streams from binding ``first`` on, and ``word(unit, i)`` over the quants.

    ``wide`` loads 16 bytes at a time, 8 where a unit has no more, for readers that take whole units.
    """
    words = unit_words(kind)
    element, read = "u32", f"quants[unit * {words}u + i]"
    if wide:
        width = min(words, 4)
        element, read = f"vec{width}<u32>", f"quants[unit * {words // width}u + i / {width}u][i % {width}u]"
    text = f"@group(0) @binding({first}) var<storage, read> quants: array<{element}>;\n"
    if has_extra(kind):
        text += f"@group(0) @binding({first + 1}) var<storage, read> extra: array<u32>;\n"
    return text + f"\nfn word(unit: u32, i: u32) -> u32 {{\n    return {read};\n}}\n"


@cache
def weight_reader(kind: TensorType) -> str:
    """WGSL of ``quarter(unit, j)``: values 4j..4j+3 and 16+4j..16+4j+3 of a unit, j in 0..3.

    Needs ``word``, ``extra`` and ``ALL_UNITS``.
    """
    own = (_WEIGHTS / f"{kind.name.lower()}.wgsl").read_text(encoding="utf-8")
    return _shared("_nibbles.wgsl", kind) + own if has_extra(kind) else own


def _shared(name: str, kind: TensorType) -> str:
    """What readers have in common; those of IQ4_NL and IQ4_XS a table besides."""
    names = [name, "_table.wgsl"] if kind in (TensorType.IQ4_NL, TensorType.IQ4_XS) else [name]
    return "".join((_WEIGHTS / name).read_text(encoding="utf-8") for name in names)


def int_bindings(first: int) -> str:
    """Declarations of a matrix's streams, 16 bytes at a time, for readers of whole numbers."""
    text = f"@group(0) @binding({first}) var<storage, read> quants: array<vec4<u32>>;\n"
    return text + f"@group(0) @binding({first + 1}) var<storage, read> extra: array<u32>;\n"


@cache
def int_reader(kind: TensorType) -> str:
    """WGSL of ``ints(unit)``, the numbers of a unit's halves, and ``scales(unit)``, both halves' scales and offsets.

    Needs ``quants``, ``extra`` and ``ALL_UNITS``.
    """
    own = (_WEIGHTS / f"whole/{kind.name.lower()}.wgsl").read_text(encoding="utf-8")
    return _shared("whole/_common.wgsl", kind) + own


def has_extra(kind: TensorType) -> bool:
    """Whether a format has a second stream."""
    return BLOCKS[kind].values > 1


def unrolled(count: int, line: Callable[[int], str]) -> str:
    """``line(0)`` to ``line(count - 1)``: private arrays are never indexed by a variable (spec: wgpu §5)."""
    return "\n".join(line(i) for i in range(count))
