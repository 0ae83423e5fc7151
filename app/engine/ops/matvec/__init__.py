"""Matrix times step columns, with the norm before it and the residual, bias or SwiGLU after it fused in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from app.engine.gguf.types import TensorType
from app.engine.memory import Slice
from app.engine.ops.render import has_extra, template, unrolled, weight_bindings, weight_reader
from app.engine.program import Dispatch, Kernel, spread
from app.engine.weights.matrix import Block


class Epilogue(Enum):
    """What happens to a sum: stored, added to what is there, or gate and up rows joined by SwiGLU."""

    STORE = "store"
    ADD = "add"
    SWIGLU = "swiglu"


@dataclass(frozen=True)
class Tuning:
    """``lanes`` threads share a row, ``grain`` quarter units at a time: these fix the order of summation.

    The rest is placement: ``teams`` of lanes a workgroup, ``rows`` a team, ``columns`` at most a workgroup.
    ``fused_norm`` normalises inputs in every workgroup instead of in a launch of its own.
    """

    lanes: int
    grain: int
    teams: int
    rows: int
    columns: int
    fused_norm: bool


@dataclass(frozen=True)
class Norm:
    """RMSNorm of the input: its weights, the true row length and epsilon."""

    weights: Slice
    size: int
    epsilon: float


@dataclass(frozen=True)
class Activations:
    """[columns, stride] float32; ``stride`` counts floats, ``first`` is where a row's part begins."""

    slice: Slice
    stride: int
    first: int = 0


def dispatch(
    block: Block,
    x: Activations,
    y: Activations,
    columns: int,
    tuning: Tuning,
    *,
    epilogue: Epilogue = Epilogue.STORE,
    norm: Norm | None = None,
    bias: Slice | None = None,
) -> Dispatch:
    """One block of a matrix. For SWIGLU the block holds all gate rows, then all up rows."""
    rows = block.rows // 2 if epilogue is Epilogue.SWIGLU else block.rows
    cols = min(columns, tuning.columns)
    source = _source(block.kind, cols, tuning, epilogue, norm is not None, bias is not None)
    slices = [x.slice, y.slice, *block.streams]
    slices += [norm.weights] if norm else []
    slices += [bias] if bias else []
    constants: dict[str, int | float] = {
        "ROWS": rows, "UNITS": block.units, "ALL_UNITS": block.rows * block.units, "X_STRIDE": x.stride // 4,
        "Y_STRIDE": y.stride, "Y_FIRST": y.first + block.first,
    }  # fmt: skip
    if epilogue is Epilogue.SWIGLU:
        constants["SECOND"] = rows
    if norm:
        constants |= {"SIZE": float(norm.size), "EPS": norm.epsilon}
    layout = ("read", "write") + ("read",) * (len(slices) - 2)
    kernel = Kernel(source, layout, tuple(constants.items()), f"matvec {block.kind.name}")
    each = _outputs_each(tuning, epilogue)
    x_groups, y_groups, _ = spread(-(-rows // (tuning.teams * each)))
    return Dispatch(kernel, tuple(slices), (x_groups, y_groups, -(-columns // cols)))


def reference(
    weights: NDArray[np.float64],
    x: NDArray[np.float64],
    epilogue: Epilogue = Epilogue.STORE,
    norm: tuple[NDArray[np.float64], float] | None = None,
) -> NDArray[np.float64]:
    """[columns, rows] in float64; for ADD the caller adds."""
    if norm:
        x = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + norm[1]) * norm[0]
    y = x @ weights.T
    if epilogue is not Epilogue.SWIGLU:
        return y
    gate, up = np.split(y, 2, axis=1)
    return gate / (1 + np.exp(-gate)) * up


def _outputs_each(tuning: Tuning, epilogue: Epilogue) -> int:
    return tuning.rows // 2 if epilogue is Epilogue.SWIGLU else tuning.rows


def _source(kind: TensorType, cols: int, tuning: Tuning, epilogue: Epilogue, norm: bool, bias: bool) -> str:
    pairs = tuning.rows * cols
    each = _outputs_each(tuning, epilogue)
    return template("matvec/kernel.wgsl").substitute(
        # A processor that imitates a GPU loads once for all lanes what it can see to be uniform.
        lane="0u" if tuning.lanes == 1 else "local.x",
        lanes=tuning.lanes,
        grain=tuning.grain,
        teams=tuning.teams,
        cols=cols,
        pairs=pairs,
        rows_each=each,
        outputs=each * cols,
        shared=tuning.lanes * tuning.teams * pairs,
        bindings=_bindings(kind, norm, bias),
        reader=weight_reader(kind),
        norm=_norm(cols) if norm else "",
        rows=unrolled(tuning.rows, lambda r: f"    let row_{r} = {_row(r, each)} * UNITS;"),
        zero=unrolled(pairs, lambda p: f"    var a_{p // cols}_{p % cols} = vec4<f32>(0.0);"),
        accumulate=unrolled(tuning.grain, lambda q: _accumulate(q, tuning.rows, cols, norm)),
        store_sums=unrolled(pairs, lambda p: _store_sum(p, cols)),
        epilogue=_epilogue(epilogue, bias, each * cols),
    )


def _bindings(kind: TensorType, norm: bool, bias: bool) -> str:
    place = 4 if has_extra(kind) else 3
    text = "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n"
    text += "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" + weight_bindings(kind, 2, wide=False)
    if norm:
        text += f"@group(0) @binding({place}) var<storage, read> norm_weights: array<vec4<f32>>;\n"
        place += 1
    if bias:
        text += f"@group(0) @binding({place}) var<storage, read> bias: array<f32>;\n"
    return text


def _row(r: int, each: int) -> str:
    """The matrix row of accumulator ``r``, clamped: rows past the end are read but never written."""
    base = f"min(first + {r % each}u, ROWS - 1u)"
    return f"({base} + SECOND)" if r >= each else base


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


def _accumulate(q: int, rows: int, cols: int, norm: bool) -> str:
    """Quarter ``q`` of a step: its two runs of four inputs, times the same of every row."""
    lines = [f"        let j_{q} = first_quarter + {q}u;"]
    lines += [f"        let w_{q}_{r} = quarter(row_{r} + unit, j_{q});" for r in range(rows)]
    for part in range(2):
        at = f"unit * 8u + j_{q} + {4 * part}u"
        if norm:
            lines.append(f"        let n_{q}_{part} = norm_weights[{at}];")
        for c in range(cols):
            value = f"x[(column + {c}u) * X_STRIDE + {at}]"
            value = f"({value} * inv_{c}) * n_{q}_{part}" if norm else value
            lines.append(f"        let x_{q}_{part}_{c} = {value};")
            lines += [f"        a_{r}_{c} = fma(w_{q}_{r}[{part}], x_{q}_{part}_{c}, a_{r}_{c});" for r in range(rows)]
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
    return f"            y[at] = {value};"
