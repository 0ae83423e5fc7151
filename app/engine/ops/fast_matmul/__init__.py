"""Matrix times prompt columns in the fast arithmetic: int8 tiles, one scaled accumulator an output (ADR 8)."""

from __future__ import annotations

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.memory import Slice
from app.engine.ops.fast_matmul.source import Place, Scale, accumulate, bindings, dots, store
from app.engine.ops.fast_matmul.tile import ROWS, tiled
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised
from app.engine.ops.render import int_reader, template, unrolled
from app.engine.placement import Epilogue
from app.engine.program import Dispatch, Kernel
from app.engine.weights.matrix import Block

__all__ = ["Place", "dispatch", "rows_of", "write_kernel"]

_ENOUGH_GROUPS = 256
"""About two workgroups for each processor of a large GPU."""
_SOFTWARE_ROWS, _SOFTWARE_COLUMNS, _SOFTWARE_THREADS = 4, 4, 8


def dispatch(
    block: Block, x: Quantised, y: Activations, columns: int, caps: Caps, *,
    epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None, tile: int = 0,
) -> Dispatch:  # fmt: skip
    """One block of a matrix over quantised columns; a column's bits depend on no other.

    ``tile`` columns a workgroup, by default as many as keep the GPU busy.
    """
    tile = tile or _tile_for(block.rows, columns, caps)
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
    return next((t for t in (64, 32) if -(-rows // ROWS) * -(-columns // t) >= _ENOUGH_GROUPS), 16)


def rows_of(caps: Caps) -> int:
    """Rows of a tile."""
    return _SOFTWARE_ROWS * _SOFTWARE_THREADS if caps.software else ROWS


def write_kernel(
    kind: TensorType, tile: int, epilogue: Epilogue, caps: Caps, place: Place, *, bias: bool = False
) -> str:
    """``tile`` columns a workgroup: 16, 32 or 64, or as few as a software adapter takes."""
    write = _rowwise if caps.software else tiled
    return write(kind, tile, epilogue, place, bias)


def _rowwise(kind: TensorType, tile: int, epilogue: Epilogue, place: Place, bias: bool) -> str:
    outputs, scale = [(i, j) for i in range(_SOFTWARE_ROWS) for j in range(tile)], Scale.of(kind)
    return template("fast_matmul/rows.wgsl").substitute(
        bindings=bindings(place, bias),
        declarations=place.declarations,
        place=place.text,
        reader=int_reader(kind),
        rows=unrolled(_SOFTWARE_ROWS, lambda i: f"    let row_{i} = first_row + {_SOFTWARE_THREADS * i}u;"),
        zero="\n".join(f"    var a_{i}_{j} = 0.0;" for i, j in outputs),
        load_w=unrolled(_SOFTWARE_ROWS, lambda i: _load_row(i, scale)),
        load_x=unrolled(tile, lambda j: _load_column(j, scale)),
        dots="\n".join(dots(i, j) for i, j in outputs),
        accumulate="\n".join(accumulate(i, j, kind) for i, j in outputs),
        store="\n".join(store(f"a_{i}_{j}", f"row_{i}", f"first_col + {j}u", epilogue, bias) for i, j in outputs),
    )


def _load_row(i: int, scale: Scale) -> str:
    return f"""        let unit_{i} = (origin + min(row_{i}, ROWS - 1u)) * UNITS + u;
        let ints_{i} = ints(unit_{i});
        let w_{i}_first = ints_{i}[0];
        let w_{i}_last = ints_{i}[1];
        let s_{i} = scales(unit_{i}){scale.of_w};"""


def _load_column(j: int, scale: Scale) -> str:
    return f"""        let col_{j} = x_row(min(first_col + {j}u, end_col - 1u)) * UNITS + u;
        let x_{j}_first = x[2u * col_{j}];
        let x_{j}_last = x[2u * col_{j} + 1u];
        let d_{j} = x_scales[col_{j}]{scale.of_x};"""
