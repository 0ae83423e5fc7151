"""The form for GPUs: tiles in workgroup memory, several rows and columns a thread."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matmul.source import Place, Scale, accumulate, bindings, dots, store
from app.engine.ops.render import int_reader, template, unrolled
from app.engine.placement import Epilogue

ROWS, _THREADS = 64, 128


@dataclass(frozen=True)
class Shape:
    """A tile of 64 rows and some columns: ``rows`` and ``columns`` a thread, ``depth`` units of k staged at a time."""

    rows: int
    columns: int
    depth: int

    @property
    def row_threads(self) -> int:
        return ROWS // self.rows

    @property
    def column_threads(self) -> int:
        return _THREADS // self.row_threads


SHAPES = {64: Shape(8, 4, 2), 32: Shape(4, 4, 2), 16: Shape(4, 2, 4)}
"""By the columns of a tile. All fit 16 KB of workgroup memory, and all sum alike."""


def tiled(kind: TensorType, tile: int, epilogue: Epilogue, place: Place, bias: bool) -> str:
    """WGSL for tiles of ``tile`` columns."""
    shape, scale = SHAPES[tile], Scale.of(kind)
    outputs = [(i, j) for i in range(shape.rows) for j in range(shape.columns)]
    staged = range(ROWS * shape.depth // _THREADS)
    return template("fast_matmul/tile.wgsl").substitute(
        bindings=bindings(place, bias),
        declarations=place.declarations,
        place=place.text,
        tile=tile,
        depth=shape.depth,
        row_threads=shape.row_threads,
        scale=scale.type,
        reader=int_reader(kind),
        my_rows="\n".join(_my_row(n, shape) for n in staged),
        zero="\n".join(f"    var a_{i}_{j} = 0.0;" for i, j in outputs),
        fetched="\n".join(_fetched(n, scale) for n in staged),
        stage_w="\n".join(_stage_w(n) for n in staged),
        fetch_first=_fetch("part", len(staged), scale),
        fetch_next=_fetch("u + DEPTH + part", len(staged), scale),
        multiply=unrolled(shape.depth, lambda part: _multiply(part, tile, shape, kind)),
        store="\n".join(
            store(
                f"a_{i}_{j}", f"first_row + r + {shape.row_threads * i}u",
                f"first_col + c + {shape.column_threads * j}u", epilogue, bias,
            )
            for i, j in outputs
        ),
    )  # fmt: skip


def _my_row(n: int, shape: Shape) -> str:
    row = f"row_{n}_of_tile"
    return f"""    let {row} = mine + {_THREADS // shape.depth * n}u;
    let my_row_{n} = (origin + min(first_row + {row}, ROWS - 1u)) * UNITS;"""


def _fetched(n: int, scale: Scale) -> str:
    return f"""    var w_first_{n} = vec4<u32>(0u);
    var w_last_{n} = vec4<u32>(0u);
    var w_scale_{n} = {scale.type}();"""


def _fetch(unit: str, rows: int, scale: Scale) -> str:
    """A unit of this thread's rows and, where it stages one, of its column; past the end with scales of zero."""
    return f"""        {{
            let own = min({unit}, UNITS - 1u);
            let inside = {unit} < UNITS;
{unrolled(rows, lambda n: _fetch_row(n, scale))}
            if (stages_x) {{
                x_first = x[2u * (my_col + own)];
                x_last = x[2u * (my_col + own) + 1u];
                x_scale = select({scale.type}(), x_scales[my_col + own]{scale.of_x}, inside);
            }}
        }}"""


def _fetch_row(n: int, scale: Scale) -> str:
    return f"""            let w_{n} = ints(my_row_{n} + own);
            w_first_{n} = w_{n}[0];
            w_last_{n} = w_{n}[1];
            w_scale_{n} = select({scale.type}(), scales(my_row_{n} + own){scale.of_w}, inside);"""


def _stage_w(n: int) -> str:
    row = f"row_{n}_of_tile"
    return f"""            tile_w[part * 128u + {row}] = w_first_{n};
            tile_w[part * 128u + 64u + {row}] = w_last_{n};
            scales_w[part * 64u + {row}] = w_scale_{n};"""


def _multiply(part: int, tile: int, shape: Shape, kind: TensorType) -> str:
    """One unit: this thread's columns, then row by row."""
    lines = ["        {"]
    for j in range(shape.columns):
        at = f"c + {shape.column_threads * j}u"
        lines.append(f"""            let x_{j}_first = tile_x[{2 * part * tile}u + {at}];
            let x_{j}_last = tile_x[{(2 * part + 1) * tile}u + {at}];
            let d_{j} = scales_x[{part * tile}u + {at}];""")
    for i in range(shape.rows):
        at = f"r + {shape.row_threads * i}u"
        lines.append(f"""            let w_{i}_first = tile_w[{128 * part}u + {at}];
            let w_{i}_last = tile_w[{128 * part + 64}u + {at}];
            let s_{i} = scales_w[{64 * part}u + {at}];""")
        lines += [f"{dots(i, j)}\n{accumulate(i, j, kind)}" for j in range(shape.columns)]
    return "\n".join([*lines, "        }"])
