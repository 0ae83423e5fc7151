"""Writes the kernel: which rows and columns a workgroup takes, the sums, the tree over the lanes, the epilogue."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matvec.order import Order, sets_of, shares_memory, shuffled
from app.engine.ops.quantise import SHUFFLES, store_quad
from app.engine.ops.render import int_bindings, int_reader, template, unrolled
from app.engine.placement import Epilogue, Placement
from app.engine.weights.ints import has_offset, has_two_scales
from app.engine.weights.layout import UNIT


@dataclass(frozen=True)
class Place:
    """Where a workgroup finds its input columns, its rows and its outputs.

    ``text`` declares ``column`` and ``out_column``, and ``origin_0`` (for ``apart`` weights one a column): the
    row where the matrix begins. ``mixed`` sums the columns with ``mix_0`` and so on as weights.
    """

    text: str
    binding: str = ""
    declarations: str = ""
    apart: bool = False
    mixed: bool = False


WHOLE = Place("    let column = group.z * COLS;\n    let out_column = column;\n    let origin_0 = 0u;")


@cache
def write_kernel(
    kind: TensorType, order: Order, placement: Placement, epilogue: Epilogue, caps: Caps, place: Place, *,
    bias: bool = False,
) -> str:  # fmt: skip
    """``placement.fused``: a workgroup makes a unit of rows and stores it as int8."""
    rows, cols, rounded = placement.rows * sets_of(epilogue), placement.columns, placement.fused
    sums = [f"a_{r}_{c}" for r in range(rows) for c in range(cols)]
    outputs = 1 if place.mixed else cols
    return template("fast_matvec/kernel.wgsl").substitute(
        lanes=order.lanes,
        teams=placement.teams,
        cols=cols,
        rows_each=placement.rows,
        bindings=_ROUNDED_BINDINGS if rounded else _bindings(epilogue, place, bias),
        declarations=place.declarations + (SHUFFLES if rounded else ""),
        reader=int_reader(kind),
        shared=_shared(order, placement.teams, len(sums), caps) + (_ROUNDED_SHARED if rounded else ""),
        place=place.text,
        rows=unrolled(rows, lambda r: f"    let row_{r} = {_row(r, placement.rows)};"),
        zero="\n".join(f"    var {a} = 0.0;" for a in sums),
        sum=_loops(_unit(rows, cols, kind, place), placement.ahead),
        reduce=_reduce(sums, order, caps),
        write=unrolled(cols, lambda c: _keep(c, placement.rows, epilogue))
        if rounded
        else unrolled(
            placement.rows * outputs,
            lambda p: _write(p // outputs, p % outputs, cols, placement.rows, epilogue, place, bias),
        ),
        round=_round() if rounded else "",
    )


def _unit(rows: int, cols: int, kind: TensorType, place: Place) -> str:
    """One unit of every row times the same of every column."""
    return "\n".join([
        unrolled(cols, _load_x),
        unrolled(rows, lambda r: _accumulate(r, cols, kind, place)),
    ])  # fmt: skip


def _loops(body: str, ahead: int) -> str:
    """``body`` for each unit of a lane in ascending order, ``ahead`` of them a round as long as there are as many."""
    one = f"    for (; at < UNITS; at += LANES) {{\n        let unit = at;\n{body}\n    }}"
    if ahead == 1:
        return f"    var at = lane;\n{one}"
    many = unrolled(ahead, lambda i: f"        {{\n        let unit = at + {i}u * LANES;\n{body}\n        }}")
    round_ = f"    for (; at + {ahead - 1}u * LANES < UNITS; at += {ahead}u * LANES) {{\n{many}\n    }}"
    return f"    var at = lane;\n{round_}\n{one}"


_ROUNDED_SHARED = f"\nvar<workgroup> results: array<f32, COLS * {UNIT}u>;"


_ROUNDED_BINDINGS = f"""@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> values: array<u32>;
@group(0) @binding(2) var<storage, read> x_scales: array<vec4<f32>>;
{int_bindings(3)}
@group(0) @binding(5) var<storage, read_write> unit_scales: array<vec4<f32>>;"""


def _keep(c: int, each: int, epilogue: Epilogue) -> str:
    """A team's results of a column, for the threads that round them."""
    return unrolled(
        each, lambda r: f"        results[{c * UNIT}u + team * ROWS_EACH + {r}u] = {_joined(r, c, each, epilogue)};"
    )


def _round() -> str:
    """Eight threads a column round a vector of four each."""
    return f"""    workgroupBarrier();
    let thread = team * LANES + lane;
    let own = min(thread, COLS * 8u - 1u);
    let result = vec4<f32>(results[4u * own], results[4u * own + 1u], results[4u * own + 2u], results[4u * own + 3u]);
    let quad = (out_column + own / 8u) * Y_STRIDE + (first_row - team * ROWS_EACH) / 4u + own % 8u;
{store_quad("result", "quad", "thread < COLS * 8u")}"""


def _bindings(epilogue: Epilogue, place: Place, bias: bool) -> str:
    lines = [
        "@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;",
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;",
        "@group(0) @binding(2) var<storage, read> x_scales: array<vec4<f32>>;",
        int_bindings(3),
    ]
    extra = (
        "bias: array<f32>" if bias else "weights: array<f32>" if epilogue is Epilogue.WEIGHTED_ADD else place.binding
    )
    if extra:
        lines.append(f"@group(0) @binding(5) var<storage, read> {extra};")
    return "\n".join(lines)


def _row(r: int, each: int) -> str:
    """The row of accumulator ``r``, clamped: rows past the end are read but never written."""
    base = f"min(first_row + {r % each}u, ROWS - 1u)"
    return f"({base} + ROWS)" if r >= each else base


def _load_x(c: int) -> str:
    at = f"((column + {c}u) * UNITS + unit)"
    return f"""        let x_{c}_first = x[2u * {at}];
        let x_{c}_last = x[2u * {at} + 1u];
        let d_{c} = x_scales[{at}];"""


def _accumulate(r: int, cols: int, kind: TensorType, place: Place) -> str:
    lines: list[str] = []
    for c in range(cols):
        own = c if place.apart else 0
        name = f"{r}_{own}"
        if c == own:
            lines.append(f"        let u_{name} = (origin_{own} + row_{r}) * UNITS + unit;")
            lines.append(f"        let w_{name} = ints(u_{name});\n        let s_{name} = scales(u_{name});")
        first, last = (f"dot_of(w_{name}[{i}], x_{c}_{part})" for i, part in enumerate(("first", "last")))
        a, s = f"a_{r}_{c}", f"s_{name}"
        if has_two_scales(kind):
            lines.append(f"        {a} = fma(d_{c}.x, fma({s}.x, f32({first}), {s}.y * f32({last})), {a});")
            lines.append(f"        {a} = fma({s}.z, d_{c}.y, fma({s}.w, d_{c}.z, {a}));")
        else:
            lines.append(f"        {a} = fma(d_{c}.x * {s}.x, f32({first} + {last}), {a});")
            if has_offset(kind):
                lines.append(f"        {a} = fma({s}.z, d_{c}.w, {a});")
    return "\n".join(lines)


def _shared(order: Order, teams: int, sums: int, caps: Caps) -> str:
    if not shares_memory(order.lanes, caps):
        return ""
    return f"var<workgroup> parts: array<f32, {order.lanes * teams * sums}>;"


def _reduce(sums: list[str], order: Order, caps: Caps) -> str:
    """The tree of halves over the lanes: the widest steps through workgroup memory, the others by shuffles.

    Both give lane 0 the same sums in the same order.
    """
    widest, lines, half = shuffled(order.lanes, caps), list[str](), order.lanes // 2
    if half >= widest:
        lines += [f"    parts[({p}u * TEAMS + team) * LANES + lane] = {a};" for p, a in enumerate(sums)]
        lines.append("    workgroupBarrier();")
    while half >= widest:
        lines.append(f"    if (lane < {half}u) {{")
        for p, a in enumerate(sums):
            at = f"({p}u * TEAMS + team) * LANES + lane"
            lines.append(f"        {a} += parts[{at} + {half}u];\n        parts[{at}] = {a};")
        lines += ["    }", "    workgroupBarrier();"]
        half //= 2
    while half:
        lines += [f"    {a} += subgroupShuffleXor({a}, {half}u);" for a in sums]
        half //= 2
    return "\n".join(lines)


def _write(r: int, c: int, cols: int, each: int, epilogue: Epilogue, place: Place, bias: bool) -> str:
    value = _mixed(r, cols) if place.mixed else _joined(r, c, each, epilogue)
    if bias:
        value = f"{value} + bias[Y_FIRST + first_row + {r}u]"
    at = f"(out_column + {c}u) * Y_STRIDE + Y_FIRST + first_row + {r}u"
    put = f"y[{at}] = {value};"
    if epilogue is Epilogue.ADD:
        put = f"y[{at}] = y[{at}] + ({value});"
    if epilogue is Epilogue.WEIGHTED_ADD:
        put = f"y[{at}] = fma(weights[(out_column + {c}u) * WEIGHT_STRIDE + WEIGHT_FIRST], {value}, y[{at}]);"
    return f"        if (first_row + {r}u < ROWS) {{ {put} }}"


def _joined(r: int, c: int, each: int, epilogue: Epilogue) -> str:
    value = f"a_{r}_{c}"
    return f"{value} / (1.0 + exp(-{value})) * a_{r + each}_{c}" if epilogue is Epilogue.SWIGLU else value


def _mixed(r: int, cols: int) -> str:
    """The columns' sums, weighted, in ascending order."""
    total = "0.0"
    for c in range(cols):
        total = f"fma(mix_{c}, a_{r}_{c}, {total})"
    return total
