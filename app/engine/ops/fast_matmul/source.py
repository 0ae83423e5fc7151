"""What both forms of the kernel share: places, scales, the sums of a unit, stores and bindings."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.gguf.types import TensorType
from app.engine.ops.render import int_bindings
from app.engine.placement import Epilogue
from app.engine.weights.ints import has_offset, has_two_scales


@dataclass(frozen=True)
class Place:
    """Which columns and rows a workgroup takes; the defaults are those of a whole matrix.

    ``text`` declares ``first_col``, ``end_col`` and ``origin``, the row where the matrix begins;
    ``functions`` are ``x_row(col)`` and ``y_row(col)``.
    """

    text: str
    bindings: tuple[str, ...] = ()
    declarations: str = """override COLUMNS: u32;
fn x_row(col: u32) -> u32 { return min(col, COLUMNS - 1u); }
fn y_row(col: u32) -> u32 { return col; }"""


@dataclass(frozen=True)
class Scale:
    """What of a unit's four scales a format uses: its type, and what is taken of a row's and of a column's."""

    type: str
    of_w: str
    of_x: str

    @staticmethod
    def of(kind: TensorType) -> Scale:
        return Scale("vec4<f32>", "", "") if has_two_scales(kind) else Scale("vec2<f32>", ".xz", ".xw")


def dots(i: int, j: int) -> str:
    """The whole-number sums of a unit's halves."""
    return f"""            let first_{i}_{j} = dot_of(w_{i}_first, x_{j}_first);
            let last_{i}_{j} = dot_of(w_{i}_last, x_{j}_last);"""


def accumulate(i: int, j: int, kind: TensorType) -> str:
    """Row ``i`` and column ``j`` of a thread: one unit's scaled sums into their accumulator."""
    a = f"a_{i}_{j}"
    if has_two_scales(kind):
        return f"""            {a} = fma(d_{j}.x, fma(s_{i}.x, f32(first_{i}_{j}), s_{i}.y * f32(last_{i}_{j})), {a});
            {a} = fma(s_{i}.z, d_{j}.y, fma(s_{i}.w, d_{j}.z, {a}));"""
    line = f"            {a} = fma(d_{j}.x * s_{i}.x, f32(first_{i}_{j} + last_{i}_{j}), {a});"
    return line + (f"\n            {a} = fma(s_{i}.y, d_{j}.y, {a});" if has_offset(kind) else "")


def store(value: str, row: str, col: str, epilogue: Epilogue, bias: bool) -> str:
    """Puts or adds ``value`` where its row and column are the workgroup's own."""
    at = f"y_row({col}) * Y_STRIDE + Y_FIRST + {row}"
    full = f"{value} + bias[Y_FIRST + {row}]" if bias else value
    put = f"y[{at}] = y[{at}] + ({full});" if epilogue is Epilogue.ADD else f"y[{at}] = {full};"
    return f"    if ({row} < ROWS && {col} < end_col) {{ {put} }}"


def bindings(place: Place, bias: bool) -> str:
    """Declarations of all buffers; a bias and those of the place come last."""
    lines = [
        "@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;",
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;",
        "@group(0) @binding(2) var<storage, read> x_scales: array<vec4<f32>>;",
        int_bindings(3),
    ]
    extra = (*(("bias: array<f32>",) if bias else ()), *place.bindings)
    lines += [f"@group(0) @binding({5 + i}) var<storage, read> {text};" for i, text in enumerate(extra)]
    return "\n".join(lines)
