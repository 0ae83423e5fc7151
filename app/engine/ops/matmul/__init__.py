"""Matrix times prompt columns: a GEMM whose bits depend on neither the chunking nor the placement."""

from __future__ import annotations

from enum import Enum

from app.engine.gguf.types import TensorType
from app.engine.memory import Slice
from app.engine.ops.matvec import Activations, Epilogue, reference
from app.engine.ops.render import has_extra, template, unrolled, weight_bindings, weight_reader
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block

__all__ = ["Placement", "dispatch", "reference"]


class Placement(Enum):
    """Which threads compute which outputs: (rows, columns) of a workgroup. All sum in the same order."""

    NARROW = (64, 16)
    """Fits the 16 KB of workgroup memory that every GPU has."""
    WIDE = (128, 64)
    """For chunks of 64 columns and more where there are 24 KB."""
    ROWWISE = (64, 4)
    """For processors that imitate a GPU."""


WIDE_SHARED_BYTES = 24 << 10
_ROWWISE_ROWS = 8
_SIZES = """override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override X_STRIDE: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;"""


def placement_for(columns: int, shared: int, *, software: bool) -> Placement:
    """``shared`` bytes of workgroup memory are there."""
    if software:
        return Placement.ROWWISE
    return Placement.WIDE if columns % 64 == 0 and shared >= WIDE_SHARED_BYTES else Placement.NARROW


def dispatch(
    block: Block,
    x: Activations,
    y: Activations,
    columns: int,
    placement: Placement,
    *,
    epilogue: Epilogue = Epilogue.STORE,
    bias: Slice | None = None,
) -> Dispatch:
    """One block of a matrix; ``columns`` is a multiple of the placement's, buffers reach that far."""
    slices = [x.slice, y.slice, *block.streams] + ([bias] if bias else [])
    constants: dict[str, int | float] = {
        "ROWS": block.rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units,
        "X_STRIDE": x.stride // 4, "Y_STRIDE": y.stride, "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    write = {Placement.NARROW: _narrow, Placement.WIDE: _wide, Placement.ROWWISE: _rowwise}[placement]
    source = write(block.kind, epilogue, bias is not None)
    kernel = Kernel(source, layout, tuple(constants.items()), f"matmul {block.kind.name}")
    rows, cols = placement.value
    return Dispatch(kernel, tuple(slices), (-(-block.rows // rows), -(-columns // cols), 1))


def _narrow(kind: TensorType, epilogue: Epilogue, bias: bool) -> str:
    def store(p: int) -> str:
        part, c = p % 8, p // 8
        return _store(f"{'ab'[part // 4]}_{c}[{part % 4}]", f"first_row + {8 * part}u + r",
                      f"first_col + c * COLS_EACH + {c}u", epilogue, bias)  # fmt: skip

    return template("matmul/narrow.wgsl").substitute(
        sizes=_SIZES,
        bindings=_bindings(kind, bias, wide=True),
        reader=weight_reader(kind),
        zero=unrolled(2, lambda c: f"    var a_{c} = vec4<f32>(0.0);\n    var b_{c} = vec4<f32>(0.0);"),
        stage_w=unrolled(4, _stage_narrow),
        accumulate=unrolled(2, _accumulate_narrow),
        store=unrolled(16, store),
    )


def _stage_narrow(j: int) -> str:
    return f"""        let w_{j} = quarter(my_row + u, {j}u);
        put({4 * j}u, thread, w_{j}[0]);
        put({16 + 4 * j}u, thread, w_{j}[1]);"""


def _accumulate_narrow(c: int) -> str:
    return f"""            let x_{c} = vec4<f32>(tile_x[k * TILE_COLS + c * COLS_EACH + {c}u]);
            a_{c} = fma(wa, x_{c}, a_{c});
            b_{c} = fma(wb, x_{c}, b_{c});"""


def _wide(kind: TensorType, epilogue: Epilogue, bias: bool) -> str:
    def store(p: int) -> str:
        part, c = p % 8, p // 8
        row = f"first_row + {64 * (part // 4)}u + 4u * r + {part % 4}u"
        col = f"first_col + {32 * (c // 4)}u + 4u * c + {c % 4}u"
        return _store(f"{'ab'[part // 4]}_{c}[{part % 4}]", row, col, epilogue, bias)

    return template("matmul/wide.wgsl").substitute(
        sizes=_SIZES,
        bindings=_bindings(kind, bias, wide=False),
        reader=weight_reader(kind),
        zero=unrolled(8, lambda c: f"    var a_{c} = vec4<f32>(0.0);\n    var b_{c} = vec4<f32>(0.0);"),
        stage_w=unrolled(8, _stage_wide),
        stage_x=unrolled(4, _stage_x),
        accumulate=unrolled(8, _accumulate_wide),
        store=unrolled(64, store),
    )


def _stage_wide(i: int) -> str:
    """Value ``i`` of the four rows' quarters, side by side in the row of its k."""
    part, at = i // 4, i % 4
    values = ", ".join(f"w_{row}[{part}][{at}]" for row in range(4))
    return f"        tile_w[({16 * part}u + 4u * j + {at}u) * TILE_ROWS + quad] = vec4<f32>({values});"


def _stage_x(i: int) -> str:
    values = ", ".join(f"x_{col}[{i}]" for col in range(4))
    return f"        tile_x[(4u * x_k + {i}u) * TILE_COLS + x_quad] = vec4<f32>({values});"


def _accumulate_wide(c: int) -> str:
    value = f"vec4<f32>({'xa' if c < 4 else 'xb'}[{c % 4}])"
    return f"            a_{c} = fma(wa, {value}, a_{c});\n            b_{c} = fma(wb, {value}, b_{c});"


def _rowwise(kind: TensorType, epilogue: Epilogue, bias: bool) -> str:
    cols = Placement.ROWWISE.value[1]
    outputs = _ROWWISE_ROWS * cols

    def store(p: int) -> str:
        r, c = p // cols, p % cols
        return _store(f"a_{r}_{c}", f"row_{r}", f"first_col + {c}u", epilogue, bias)

    return template("matmul/rows.wgsl").substitute(
        cols_each=cols,
        sizes=_SIZES,
        bindings=_bindings(kind, bias, wide=True),
        reader=weight_reader(kind),
        rows=unrolled(_ROWWISE_ROWS, lambda r: f"    let row_{r} = first_row + {8 * r}u;"),
        zero=unrolled(outputs, lambda p: f"    var a_{p // cols}_{p % cols} = 0.0;"),
        accumulate=_load_rows() + unrolled(8 * cols, lambda p: _accumulate_row(p // cols, p % cols)),
        store=unrolled(outputs, store),
    )


def _load_rows() -> str:
    def load(p: int) -> str:
        r, j = p // 4, p % 4
        return f"        let w_{r}_{j} = quarter(min(row_{r}, ROWS - 1u) * UNITS + u, {j}u);"

    return unrolled(4 * _ROWWISE_ROWS, load) + "\n"


def _accumulate_row(i: int, c: int) -> str:
    """The four values from 4i on, in ascending order."""
    lines = [f"        let x_{i}_{c} = x[(first_col + {c}u) * X_STRIDE + u * 8u + {i}u];"]
    for r in range(_ROWWISE_ROWS):
        w = f"w_{r}_{i % 4}[{i // 4}]"
        lines += [f"        a_{r}_{c} = fma({w}.{k}, x_{i}_{c}.{k}, a_{r}_{c});" for k in "xyzw"]
    return "\n".join(lines)


def _store(value: str, row: str, col: str, epilogue: Epilogue, bias: bool) -> str:
    at = f"({col}) * Y_STRIDE + Y_FIRST + {row}"
    full = f"{value} + bias[Y_FIRST + {row}]" if bias else value
    put = f"y[{at}] = " + (f"y[{at}] + ({full});" if epilogue is Epilogue.ADD else f"{full};")
    return f"    if ({row} < ROWS) {{ {put} }}"


def _bindings(kind: TensorType, bias: bool, *, wide: bool) -> str:
    text = "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n"
    text += "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" + weight_bindings(kind, 2, wide=wide)
    if bias:
        text += f"@group(0) @binding({4 if has_extra(kind) else 3}) var<storage, read> bias: array<f32>;\n"
    return text
