"""Matrix times prompt columns in the fast arithmetic: int8 tiles, one scaled accumulator an output (ADR 8)."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.memory import Slice
from app.engine.ops.matvec import Activations, Epilogue
from app.engine.ops.quantise import Quantised
from app.engine.ops.render import int_bindings, int_reader, template, unrolled
from app.engine.program import Dispatch, Kernel
from app.engine.weights.ints import has_offset, has_two_scales
from app.engine.weights.matrix import Block

_ROWS, _PARTS = 64, 16
_ENOUGH_GROUPS = 256
"""About two workgroups for each processor of a large GPU."""
_ROWS_EACH = _ROWS // _PARTS
_SOFTWARE_ROWS, _SOFTWARE_COLUMNS, _SOFTWARE_THREADS = 4, 4, 8


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


def dispatch(
    block: Block, x: Quantised, y: Activations, columns: int, caps: Caps, *,
    epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None,
) -> Dispatch:  # fmt: skip
    """One block of a matrix over quantised columns; a column's bits depend on no other."""
    tile = _tile_for(block.rows, columns, caps)
    place = Place(f"    let first_col = group.y * {tile}u;\n    let end_col = COLUMNS;\n    let origin = 0u;")
    slices = [x.values, y.slice, x.scales, *block.streams] + ([bias] if bias else [])
    constants: dict[str, int | float] = {
        "ROWS": block.rows, "COLUMNS": columns, "UNITS": block.units, "ALL_UNITS": block.rows * block.units,
        "Y_STRIDE": y.stride, "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    source = write_kernel(block.kind, tile, epilogue, caps, place, bias=bias is not None)
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    kernel = Kernel(source, layout, tuple(constants.items()), f"fast matmul {block.kind.name}")
    return Dispatch(kernel, tuple(slices), (-(-block.rows // rows_of(caps)), -(-columns // tile), 1))


def _tile_for(rows: int, columns: int, caps: Caps) -> int:
    """Narrower tiles where wide ones would leave most of a GPU idle."""
    if caps.software:
        return _SOFTWARE_COLUMNS
    return next((t for t in (64, 32) if -(-rows // _ROWS) * -(-columns // t) >= _ENOUGH_GROUPS), 16)


def rows_of(caps: Caps) -> int:
    """Rows of a tile."""
    return _SOFTWARE_ROWS * _SOFTWARE_THREADS if caps.software else _ROWS


def write_kernel(
    kind: TensorType, tile: int, epilogue: Epilogue, caps: Caps, place: Place, *, bias: bool = False
) -> str:
    """``tile`` columns a workgroup: 16, 32 or 64, or as few as a software adapter takes."""
    write = _rowwise if caps.software else _tiled
    return write(kind, tile, epilogue, place, bias)


def _tiled(kind: TensorType, tile: int, epilogue: Epilogue, place: Place, bias: bool) -> str:
    each = tile // _PARTS
    outputs = [(i, j) for i in range(_ROWS_EACH) for j in range(each)]
    return template("fast_matmul/tile.wgsl").substitute(
        bindings=_bindings(place, bias),
        declarations=place.declarations,
        place=place.text,
        tile=tile,
        reader=int_reader(kind),
        zero="\n".join(f"    var a_{i}_{j} = 0.0;" for i, j in outputs),
        load_w=unrolled(_ROWS_EACH, _load_w),
        load_x=unrolled(each, lambda j: _load_x(j, tile, each)),
        dots="\n".join(_dots(i, j) for i, j in outputs),
        accumulate="\n".join(accumulate(i, j, kind) for i, j in outputs),
        store="\n".join(
            _store(f"a_{i}_{j}", f"first_row + r + {_PARTS * i}u", f"first_col + {each}u * c + {j}u", epilogue, bias)
            for i, j in outputs
        ),
    )


def _load_w(i: int) -> str:
    return f"""            let w_{i}_first = tile_w[(2u * part) * 64u + r + {_PARTS * i}u];
            let w_{i}_last = tile_w[(2u * part + 1u) * 64u + r + {_PARTS * i}u];
            let s_{i} = scales_w[part * 64u + r + {_PARTS * i}u];"""


def _load_x(j: int, tile: int, each: int) -> str:
    at = f"{each}u * c + {j}u"
    return f"""            let x_{j}_first = tile_x[(2u * part) * {tile}u + {at}];
            let x_{j}_last = tile_x[(2u * part + 1u) * {tile}u + {at}];
            let d_{j} = scales_x[part * {tile}u + {at}];"""


def _dots(i: int, j: int) -> str:
    return f"""            let first_{i}_{j} = dot_of(w_{i}_first, x_{j}_first);
            let last_{i}_{j} = dot_of(w_{i}_last, x_{j}_last);"""


def accumulate(i: int, j: int, kind: TensorType) -> str:
    """Row ``i`` and column ``j`` of a thread: one unit's scaled sums into their accumulator."""
    a = f"a_{i}_{j}"
    if has_two_scales(kind):
        return f"""            {a} = fma(d_{j}.x, fma(s_{i}.x, f32(first_{i}_{j}), s_{i}.y * f32(last_{i}_{j})), {a});
            {a} = fma(s_{i}.z, d_{j}.y, fma(s_{i}.w, d_{j}.z, {a}));"""
    line = f"            {a} = fma(d_{j}.x * s_{i}.x, f32(first_{i}_{j} + last_{i}_{j}), {a});"
    return line + (f"\n            {a} = fma(s_{i}.z, d_{j}.w, {a});" if has_offset(kind) else "")


def _store(value: str, row: str, col: str, epilogue: Epilogue, bias: bool) -> str:
    at = f"y_row({col}) * Y_STRIDE + Y_FIRST + {row}"
    full = f"{value} + bias[Y_FIRST + {row}]" if bias else value
    put = f"y[{at}] = y[{at}] + ({full});" if epilogue is Epilogue.ADD else f"y[{at}] = {full};"
    return f"    if ({row} < ROWS && {col} < end_col) {{ {put} }}"


def _rowwise(kind: TensorType, tile: int, epilogue: Epilogue, place: Place, bias: bool) -> str:
    outputs = [(i, j) for i in range(_SOFTWARE_ROWS) for j in range(tile)]
    return template("fast_matmul/rows.wgsl").substitute(
        bindings=_bindings(place, bias),
        declarations=place.declarations,
        place=place.text,
        reader=int_reader(kind),
        rows=unrolled(_SOFTWARE_ROWS, lambda i: f"    let row_{i} = first_row + {_SOFTWARE_THREADS * i}u;"),
        zero="\n".join(f"    var a_{i}_{j} = 0.0;" for i, j in outputs),
        load_w=unrolled(_SOFTWARE_ROWS, _load_row),
        load_x=unrolled(tile, _load_column),
        dots="\n".join(_dots(i, j) for i, j in outputs),
        accumulate="\n".join(accumulate(i, j, kind) for i, j in outputs),
        store="\n".join(_store(f"a_{i}_{j}", f"row_{i}", f"first_col + {j}u", epilogue, bias) for i, j in outputs),
    )


def _load_row(i: int) -> str:
    return f"""        let unit_{i} = (origin + min(row_{i}, ROWS - 1u)) * UNITS + u;
        let ints_{i} = ints(unit_{i});
        let w_{i}_first = ints_{i}[0];
        let w_{i}_last = ints_{i}[1];
        let s_{i} = scales(unit_{i});"""


def _load_column(j: int) -> str:
    return f"""        let col_{j} = x_row(min(first_col + {j}u, end_col - 1u)) * UNITS + u;
        let x_{j}_first = x[2u * col_{j}];
        let x_{j}_last = x[2u * col_{j} + 1u];
        let d_{j} = x_scales[col_{j}];"""


def _bindings(place: Place, bias: bool) -> str:
    lines = [
        "@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;",
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;",
        "@group(0) @binding(2) var<storage, read> x_scales: array<vec4<f32>>;",
        int_bindings(3),
    ]
    extra = (*(("bias: array<f32>",) if bias else ()), *place.bindings)
    lines += [f"@group(0) @binding({5 + i}) var<storage, read> {text};" for i, text in enumerate(extra)]
    return "\n".join(lines)
