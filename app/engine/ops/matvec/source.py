"""WGSL of the matvec family: one order of summation, whatever the place of a workgroup and the end of a sum."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.gguf.types import TensorType
from app.engine.ops.matvec.types import Tuning
from app.engine.ops.render import has_extra, template, unrolled, weight_bindings, weight_reader
from app.engine.placement import Epilogue


@dataclass(frozen=True)
class Place:
    """Which weights and columns a workgroup takes.

    ``text`` sets ``column`` and ``out_column``, the first rows of x and y, and ``origin``, the first row of the
    weights. Where columns are ``mixed`` each has an origin of its own, ``origin_0`` and so on, and the function
    ``mixed(row, team, column)`` of ``declarations`` joins their sums into one output.
    """

    text: str = """    let column = group.z * COLS;
    let out_column = column;
    let origin = 0u;"""
    binding: str = ""
    declarations: str = ""
    mixed: bool = False


PLAIN = Place()


def outputs_each(tuning: Tuning, epilogue: Epilogue) -> int:
    """Outputs a team makes for a column: SwiGLU joins two rows into one."""
    return tuning.rows // 2 if epilogue is Epilogue.SWIGLU else tuning.rows


def write_kernel(
    kind: TensorType, cols: int, tuning: Tuning, epilogue: Epilogue, place: Place = PLAIN, *,
    norm: bool = False, bias: bool = False,
) -> str:  # fmt: skip
    """Bindings: x, y, the weights, then in this order those of the norm, the bias, the weights of
    WEIGHTED_ADD and the place."""
    pairs = tuning.rows * cols
    each = outputs_each(tuning, epilogue)
    out_cols = 1 if place.mixed else cols
    return template("matvec/kernel.wgsl").substitute(
        # A processor that imitates a GPU loads once for all lanes what it can see to be uniform.
        lane="0u" if tuning.lanes == 1 else "local.x",
        lanes=tuning.lanes,
        lane_bits=tuning.lanes.bit_length() - 1,
        grain=tuning.grain,
        teams=tuning.teams,
        cols=cols,
        pairs=pairs,
        rows_each=each,
        outputs=each * out_cols,
        out_cols=out_cols,
        shared=tuning.lanes * tuning.teams * pairs,
        bindings=_bindings(kind, norm, bias, epilogue is Epilogue.WEIGHTED_ADD, place.binding),
        reader=weight_reader(kind),
        declarations=place.declarations,
        place=place.text,
        norm=_norm(cols) if norm else "",
        rows=_rows(tuning.rows, each, cols, place.mixed),
        zero=unrolled(pairs, lambda p: f"    var a_{p // cols}_{p % cols} = vec4<f32>(0.0);"),
        accumulate=unrolled(tuning.grain, lambda q: _accumulate(q, tuning.rows, cols, norm, place.mixed)),
        store_sums=unrolled(pairs, lambda p: _store_sum(p, cols)),
        value="mixed(p, team, out_column)" if place.mixed else "sums[(p * TEAMS + team) * LANES]",
        epilogue=_epilogue(epilogue, bias, each * cols),
    )


def _bindings(kind: TensorType, norm: bool, bias: bool, weighted: bool, place: str) -> str:
    text = "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n"
    text += "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" + weight_bindings(kind, 2, wide=False)
    optional = {
        "norm_weights: array<vec4<f32>>": norm, "bias: array<f32>": bias, "weights: array<f32>": weighted, place: place,
    }  # fmt: skip
    used = [name for name, wanted in optional.items() if wanted]
    first = 4 if has_extra(kind) else 3
    return text + "".join(
        f"@group(0) @binding({first + i}) var<storage, read> {name};\n" for i, name in enumerate(used)
    )


def _rows(rows: int, each: int, cols: int, mixed: bool) -> str:
    """Where the rows of the accumulators begin, clamped: rows past the end are read but never written."""

    def row(r: int, origin: str) -> str:
        base = f"{origin} + min(first + {r % each}u, ROWS - 1u)"
        return f"({base} + SECOND) * UNITS;" if r >= each else f"({base}) * UNITS;"

    if not mixed:
        return unrolled(rows, lambda r: f"    let row_{r} = {row(r, 'origin')}")
    return unrolled(
        rows * cols, lambda p: f"    let row_{p // cols}_{p % cols} = {row(p // cols, f'origin_{p % cols}')}"
    )


def _norm(cols: int) -> str:
    return f"""
    let thread = team * LANES + lane;
    for (var c = 0u; c < COLS; c++) {{
        var squares = vec4<f32>(0.0);
        for (var k = thread; k < X_STRIDE; k += LANES * TEAMS) {{
            let v = x[(column + c) * X_STRIDE + k];
            squares = fma(v, v, squares);
        }}
        sums[c * LANES * TEAMS + thread] = (squares.x + squares.y) + (squares.z + squares.w);
    }}
    workgroupBarrier();
    for (var half = LANES * TEAMS / 2u; half > 0u; half >>= 1u) {{
        if (thread < half) {{
            for (var c = 0u; c < COLS; c++) {{
                sums[c * LANES * TEAMS + thread] += sums[c * LANES * TEAMS + thread + half];
            }}
        }}
        workgroupBarrier();
    }}
{unrolled(cols, lambda c: f"    let inv_{c} = inverseSqrt(sums[{c}u * LANES * TEAMS] / SIZE + EPS);")}
    workgroupBarrier();"""


def _accumulate(q: int, rows: int, cols: int, norm: bool, mixed: bool) -> str:
    """Quarter ``q`` of a step: its two runs of four inputs, times the same of every row."""

    def weight(r: int, c: int) -> str:
        return f"{r}_{c}" if mixed else f"{r}"

    names = [weight(r, c) for r in range(rows) for c in range(cols if mixed else 1)]
    lines = [f"        let j_{q} = first_quarter + {q}u;"]
    lines += [f"        let w_{q}_{name} = quarter(row_{name} + unit, j_{q});" for name in names]
    for part in range(2):
        at = f"unit * 8u + j_{q} + {4 * part}u"
        if norm:
            lines.append(f"        let n_{q}_{part} = norm_weights[{at}];")
        for c in range(cols):
            value = f"x[(column + {c}u) * X_STRIDE + {at}]"
            value = f"({value} * inv_{c}) * n_{q}_{part}" if norm else value
            lines.append(f"        let x_{q}_{part}_{c} = {value};")
            lines += [
                f"        a_{r}_{c} = fma(w_{q}_{weight(r, c)}[{part}], x_{q}_{part}_{c}, a_{r}_{c});"
                for r in range(rows)
            ]
    return "\n".join(lines)


def _store_sum(p: int, cols: int) -> str:
    a = f"a_{p // cols}_{p % cols}"
    return f"    sums[({p}u * TEAMS + team) * LANES + lane] = ({a}.x + {a}.y) + ({a}.z + {a}.w);"


def _epilogue(epilogue: Epilogue, bias: bool, outputs: int) -> str:
    if epilogue is Epilogue.SWIGLU:
        up = f"sums[((p + {outputs}u) * TEAMS + team) * LANES]"
        return f"            y[at] = value / (1.0 + exp(-value)) * {up};"
    value = "value + bias[Y_FIRST + row]" if bias else "value"
    if epilogue is Epilogue.ADD:
        return f"            y[at] = y[at] + ({value});"
    if epilogue is Epilogue.WEIGHTED_ADD:
        weight = "weights[(out_column + c) * WEIGHT_STRIDE + WEIGHT_FIRST]"
        return f"            y[at] = fma({weight}, {value}, y[at]);"
    return f"            y[at] = {value};"
