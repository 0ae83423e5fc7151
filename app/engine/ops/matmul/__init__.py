"""Matrix times prompt columns: a GEMM whose bits depend on neither the chunking nor the placement."""

from __future__ import annotations

from app.engine.gguf.types import BLOCKS, TensorType
from app.engine.memory import Slice
from app.engine.ops.matvec import Activations, Epilogue, reference
from app.engine.ops.render import template, unit_reader, unrolled, weight_bindings
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block

__all__ = ["ROW_TILE", "dispatch", "reference"]

ROW_TILE = 64
_ROWWISE_COLUMNS = 4
_ROWWISE_ROWS = 8


def dispatch(
    block: Block,
    x: Activations,
    y: Activations,
    columns: int,
    *,
    epilogue: Epilogue = Epilogue.STORE,
    bias: Slice | None = None,
    rowwise: bool = False,
) -> Dispatch:
    """One block of a matrix; ``columns`` is a multiple of 16, buffers reach that far.

    ``rowwise`` is the placement for processors that imitate a GPU.
    """
    tile = _ROWWISE_COLUMNS if rowwise else _tile_columns(columns)
    slices = [x.slice, y.slice, *block.streams] + ([bias] if bias else [])
    constants: dict[str, int | float] = {
        "ROWS": block.rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units,
        "X_STRIDE": x.stride // 4, "Y_STRIDE": y.stride, "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    write = _rowwise_source if rowwise else _tiled_source
    source = write(block.kind, tile, epilogue, bias is not None)
    kernel = Kernel(source, layout, tuple(constants.items()), f"matmul {block.kind.name}")
    return Dispatch(kernel, tuple(slices), (-(-block.rows // ROW_TILE), -(-columns // tile), 1))


def _tile_columns(columns: int) -> int:
    """Narrow chunks waste little in a narrow tile."""
    return 16 if columns <= 16 else 32


def _rowwise_source(kind: TensorType, cols: int, epilogue: Epilogue, bias: bool) -> str:
    outputs = _ROWWISE_ROWS * cols
    return template("matmul/rows.wgsl").substitute(
        cols_each=cols,
        bindings=_bindings(kind, bias),
        reader=unit_reader(kind),
        rows=unrolled(_ROWWISE_ROWS, lambda r: f"    let row_{r} = first_row + {8 * r}u;"),
        zero=unrolled(outputs, lambda p: f"    var a_{p // cols}_{p % cols} = 0.0;"),
        load=unrolled(
            _ROWWISE_ROWS, lambda r: f"        let w_{r} = unit_weights(min(row_{r}, ROWS - 1u) * UNITS + u);"
        ),
        accumulate=unrolled(8 * cols, lambda p: _accumulate_row(p // cols, p % cols)),
        store=unrolled(outputs, lambda p: _store_row(p // cols, p % cols, epilogue, bias)),
    )


def _accumulate_row(i: int, c: int) -> str:
    lines = [f"        let x_{i}_{c} = x[(first_col + {c}u) * X_STRIDE + u * 8u + {i}u];"]
    for r in range(_ROWWISE_ROWS):
        lines += [f"        a_{r}_{c} = fma(w_{r}[{i}].{k}, x_{i}_{c}.{k}, a_{r}_{c});" for k in "xyzw"]
    return "\n".join(lines)


def _store_row(r: int, c: int, epilogue: Epilogue, bias: bool) -> str:
    store = _store(f"a_{r}_{c}", f"row_{r}", f"first_col + {c}u", epilogue, bias)
    return f"    if (row_{r} < ROWS) {{\n{store}\n    }}"


def _tiled_source(kind: TensorType, tile: int, epilogue: Epilogue, bias: bool) -> str:
    each = tile // 8
    return template("matmul/kernel.wgsl").substitute(
        cols_each=each,
        tile_cols=tile,
        shared_x=32 * tile,
        bindings=_bindings(kind, bias),
        reader=unit_reader(kind),
        zero=unrolled(each, lambda c: f"    var a_{c} = vec4<f32>(0.0);\n    var b_{c} = vec4<f32>(0.0);"),
        stage_w=unrolled(8, lambda i: f"        put({4 * i}u, thread, w[{i}]);"),
        accumulate=unrolled(each, _accumulate_tile),
        store=unrolled(each, lambda c: unrolled(8, lambda part: _store_tile(c, part, epilogue, bias))),
    )


def _accumulate_tile(c: int) -> str:
    return f"""            let x_{c} = vec4<f32>(tile_x[k * TILE_COLS + c * COLS_EACH + {c}u]);
            a_{c} = fma(wa, x_{c}, a_{c});
            b_{c} = fma(wb, x_{c}, b_{c});"""


def _store_tile(c: int, part: int, epilogue: Epilogue, bias: bool) -> str:
    row = f"first_row + {8 * part}u + r"
    value = f"{'ab'[part // 4]}_{c}[{part % 4}]"
    store = _store(value, row, f"first_col + c * COLS_EACH + {c}u", epilogue, bias)
    return f"    if ({row} < ROWS) {{\n{store}\n    }}"


def _store(value: str, row: str, col: str, epilogue: Epilogue, bias: bool) -> str:
    at = f"({col}) * Y_STRIDE + Y_FIRST + {row}"
    full = f"{value} + bias[Y_FIRST + {row}]" if bias else value
    return f"        y[{at}] = " + (f"y[{at}] + ({full});" if epilogue is Epilogue.ADD else f"{full};")


def _bindings(kind: TensorType, bias: bool) -> str:
    text = "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n"
    text += "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" + weight_bindings(kind, 2)
    if bias:
        place = 3 if BLOCKS[kind].values == 1 else 4
        text += f"@group(0) @binding({place}) var<storage, read> bias: array<f32>;\n"
    return text
