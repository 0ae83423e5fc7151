"""WGSL of the GEMM family: one order of summation, whatever the tile and however its columns are found."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from app.engine.gguf.types import TensorType
from app.engine.ops.matmul.placement import Placement
from app.engine.ops.render import has_extra, template, unrolled, weight_bindings, weight_reader
from app.engine.placement import Epilogue

_ROWWISE_ROWS = 8
_SIZES = """override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override X_STRIDE: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;"""


@dataclass(frozen=True)
class Columns:
    """How a workgroup finds its columns.

    ``place`` sets ``first_col`` and ``origin``, the first row of its weights; the functions ``x_row`` and
    ``y_row`` of ``declarations`` say where a column lies. ``inside`` is the condition that ``col`` is one of its own.
    """

    bindings: tuple[str, ...] = ()
    declarations: str = """fn x_row(col: u32) -> u32 { return col; }
fn y_row(col: u32) -> u32 { return col; }"""
    place: str = "    let first_col = group.y * ${columns}u;\n    let origin = 0u;"
    inside: str = "true"


PLAIN = Columns()


@dataclass(frozen=True)
class Ending:
    """What is done with the outputs."""

    epilogue: Epilogue
    bias: bool
    inside: str

    def column(self, col: str, outputs: list[tuple[str, str]]) -> str:
        """Stores (value, row) pairs of a column."""
        lines = [f"    {{\n        let col = {col};\n        if ({self.inside}) {{"]
        lines.append("            let to = y_row(col) * Y_STRIDE + Y_FIRST;")
        return "\n".join([*lines, *(self._output(*output) for output in outputs), "        }\n    }"])

    def _output(self, value: str, row: str) -> str:
        full = f"{value} + bias[Y_FIRST + {row}]" if self.bias else value
        old = f"y[to + {row}]"
        put = f"{old} + ({full})" if self.epilogue is Epilogue.ADD else full
        return f"            if ({row} < ROWS) {{ {old} = {put}; }}"


def write_kernel(
    kind: TensorType, placement: Placement, epilogue: Epilogue, columns: Columns = PLAIN, *, bias: bool = False
) -> str:
    """Bindings: x, y, the weights, then those of the bias and the columns."""
    wide = placement in (Placement.NARROW, Placement.ROWWISE)
    write = {Placement.NARROW: _narrow, Placement.ROWWISE: _rowwise}.get(placement, _tile)
    parts = write(placement, Ending(epilogue, bias, columns.inside))
    name = {Placement.NARROW: "narrow", Placement.ROWWISE: "rows"}.get(placement, "tile")
    return template(f"matmul/{name}.wgsl").substitute(
        parts,
        sizes=_SIZES,
        bindings=_bindings(kind, bias, columns.bindings, wide=wide),
        reader=weight_reader(kind),
        declarations=columns.declarations,
        place=Template(columns.place).substitute(columns=placement.columns),
    )


def _narrow(placement: Placement, ending: Ending) -> dict[str, str]:
    def store(c: int) -> str:
        outputs = [(f"{'ab'[p // 4]}_{c}[{p % 4}]", f"first_row + {8 * p}u + r") for p in range(8)]
        return ending.column(f"first_col + c * COLS_EACH + {c}u", outputs)

    return {
        "zero": unrolled(2, lambda c: f"    var a_{c} = vec4<f32>(0.0);\n    var b_{c} = vec4<f32>(0.0);"),
        "stage_w": unrolled(4, _stage_narrow_w),
        "stage_x": unrolled(2, _stage_narrow_x),
        "accumulate": unrolled(2, _accumulate_narrow),
        "store": unrolled(2, store),
    }


def _stage_narrow_w(j: int) -> str:
    return f"""        let w_{j} = quarter(my_row + u, {j}u);
        put({4 * j}u, thread, w_{j}[0]);
        put({16 + 4 * j}u, thread, w_{j}[1]);"""


def _stage_narrow_x(i: int) -> str:
    lines = [f"        let x_{i} = x[x_from_{i} + u * 8u];"]
    lines += [f"        tile_x[(x_k * 4u + {k}u) * TILE_COLS + x_col + {8 * i}u] = x_{i}[{k}];" for k in range(4)]
    return "\n".join(lines)


def _accumulate_narrow(c: int) -> str:
    return f"""            let x_{c} = vec4<f32>(tile_x[k * TILE_COLS + c * COLS_EACH + {c}u]);
            a_{c} = fma(wa, x_{c}, a_{c});
            b_{c} = fma(wb, x_{c}, b_{c});"""


def _tile(placement: Placement, ending: Ending) -> dict[str, str | int]:
    """Eight rows a thread, and four columns for each 32 of the tile."""
    half, bands = placement.rows // 2, placement.columns // 32

    def store(p: int) -> str:
        outputs = [
            (f"{'ab'[i // 4]}_{p}[{i % 4}]", f"first_row + {half * (i // 4) + i % 4}u + 4u * r") for i in range(8)
        ]
        return ending.column(f"first_col + {32 * (p // 4) + p % 4}u + 4u * c", outputs)

    return {
        "rows": placement.rows,
        "columns": placement.columns,
        "zero": unrolled(4 * bands, lambda c: f"    var a_{c} = vec4<f32>(0.0);\n    var b_{c} = vec4<f32>(0.0);"),
        "stage_w": unrolled(8, _stage_tile_w),
        "stage_x": unrolled(4, _stage_tile_x),
        "load_x": unrolled(bands, lambda b: f"            let x_{b} = tile_x[k * COL_QUADS + {8 * b}u + c];"),
        "accumulate": unrolled(4 * bands, _accumulate_tile),
        "store": unrolled(4 * bands, store),
    }


def _stage_tile_w(i: int) -> str:
    """Value ``i`` of the four rows' quarters, side by side in the row of its k."""
    part, at = i // 4, i % 4
    values = ", ".join(f"w_{row}[{part}][{at}]" for row in range(4))
    return f"        tile_w[({16 * part}u + 4u * j + {at}u) * ROW_QUADS + quad] = vec4<f32>({values});"


def _stage_tile_x(i: int) -> str:
    values = ", ".join(f"x_{col}[{i}]" for col in range(4))
    return f"        tile_x[(4u * x_k + {i}u) * COL_QUADS + x_quad] = vec4<f32>({values});"


def _accumulate_tile(c: int) -> str:
    value = f"vec4<f32>(x_{c // 4}[{c % 4}])"
    return f"            a_{c} = fma(wa, {value}, a_{c});\n            b_{c} = fma(wb, {value}, b_{c});"


def _rowwise(placement: Placement, ending: Ending) -> dict[str, str]:
    cols = placement.columns
    outputs = _ROWWISE_ROWS * cols

    def store(c: int) -> str:
        return ending.column(f"first_col + {c}u", [(f"a_{r}_{c}", f"row_{r}") for r in range(_ROWWISE_ROWS)])

    rows = unrolled(_ROWWISE_ROWS, lambda r: f"    let row_{r} = first_row + {8 * r}u;")
    starts = unrolled(cols, lambda c: f"    let from_{c} = x_row(first_col + {c}u) * X_STRIDE;")
    return {
        "rows": f"{rows}\n{starts}",
        "zero": unrolled(outputs, lambda p: f"    var a_{p // cols}_{p % cols} = 0.0;"),
        "accumulate": _load_rows() + unrolled(8 * cols, lambda p: _accumulate_row(p // cols, p % cols)),
        "store": unrolled(cols, store),
    }


def _load_rows() -> str:
    def load(p: int) -> str:
        r, j = p // 4, p % 4
        return f"        let w_{r}_{j} = quarter((origin + min(row_{r}, ROWS - 1u)) * UNITS + u, {j}u);"

    return unrolled(4 * _ROWWISE_ROWS, load) + "\n"


def _accumulate_row(i: int, c: int) -> str:
    """The four values from 4i on, in ascending order."""
    lines = [f"        let x_{i}_{c} = x[from_{c} + u * 8u + {i}u];"]
    for r in range(_ROWWISE_ROWS):
        w = f"w_{r}_{i % 4}[{i // 4}]"
        lines += [f"        a_{r}_{c} = fma({w}.{k}, x_{i}_{c}.{k}, a_{r}_{c});" for k in "xyzw"]
    return "\n".join(lines)


def _bindings(kind: TensorType, bias: bool, columns: tuple[str, ...], *, wide: bool) -> str:
    text = "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n"
    text += "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" + weight_bindings(kind, 2, wide=wide)
    names = ("bias: array<f32>",) * bias + columns
    first = 4 if has_extra(kind) else 3
    return text + "".join(
        f"@group(0) @binding({first + i}) var<storage, read> {name};\n" for i, name in enumerate(names)
    )
