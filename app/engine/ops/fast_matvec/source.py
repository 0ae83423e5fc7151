"""Writes the kernel: which rows and columns a workgroup takes, the sums, the tree over the lanes, the epilogue."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matvec.order import Order
from app.engine.ops.matvec import Epilogue
from app.engine.ops.quantise import SHUFFLES, store_quad
from app.engine.ops.render import int_bindings, int_reader, template, unrolled
from app.engine.weights.ints import has_offset, has_two_scales


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


def write_kernel(
    kind: TensorType, cols: int, order: Order, epilogue: Epilogue, caps: Caps, place: Place, *,
    bias: bool = False, rounded: bool = False,
) -> str:  # fmt: skip
    """``cols`` input columns a workgroup; ``rounded``: it has a unit of rows and stores them as int8."""
    rows = order.rows * (2 if epilogue is Epilogue.SWIGLU else 1)
    sums = [f"a_{r}_{c}" for r in range(rows) for c in range(cols)]
    outputs = 1 if place.mixed else cols
    return template("fast_matvec/kernel.wgsl").substitute(
        lanes=order.lanes,
        teams=order.teams,
        cols=cols,
        rows_each=order.rows,
        bindings=_rounded_bindings() if rounded else _bindings(epilogue, place, bias),
        declarations=place.declarations + (SHUFFLES if rounded else ""),
        reader=int_reader(kind),
        shared=_shared(order, len(sums), caps) + (_ROUNDED_SHARED if rounded else ""),
        place=place.text,
        rows=unrolled(rows, lambda r: f"    let row_{r} = {_row(r, order.rows)};"),
        zero="\n".join(f"    var {a} = 0.0;" for a in sums),
        load_x=unrolled(cols, _load_x),
        accumulate=unrolled(rows, lambda r: _accumulate(r, cols, kind, place)),
        reduce=_reduce(sums, order, caps),
        write=unrolled(cols, lambda c: _keep(c, order, epilogue))
        if rounded
        else unrolled(
            order.rows * outputs, lambda p: _write(p // outputs, p % outputs, cols, order, epilogue, place, bias)
        ),
        round=_round() if rounded else "",
    )


_ROUNDED_SHARED = "\nvar<workgroup> results: array<vec4<f32>, COLS * TEAMS>;"


def _rounded_bindings() -> str:
    return f"""@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> values: array<u32>;
@group(0) @binding(2) var<storage, read> x_scales: array<vec4<f32>>;
{int_bindings(3)}
@group(0) @binding(5) var<storage, read_write> unit_scales: array<vec4<f32>>;"""


def _keep(c: int, order: Order, epilogue: Epilogue) -> str:
    """A team's four results of a column, for the threads that round them."""
    values = ", ".join(_joined(r, c, order, epilogue) for r in range(order.rows))
    return f"        results[{c}u * TEAMS + team] = vec4<f32>({values});"


def _round() -> str:
    return f"""    workgroupBarrier();
    let thread = team * LANES + lane;
    let own = min(thread, COLS * TEAMS - 1u);
    let result = results[own];
    let quad = (out_column + own / TEAMS) * Y_STRIDE + first_row / 4u - team + own % TEAMS;
{store_quad("result", "quad", "thread < COLS * TEAMS")}"""


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


def _shuffled(order: Order, caps: Caps) -> int:
    """Lanes that are joined by shuffles; 1 where there are no subgroups."""
    return min(caps.subgroup, order.lanes) if caps.subgroup else 1


def _shared(order: Order, sums: int, caps: Caps) -> str:
    if order.lanes <= _shuffled(order, caps):
        return ""
    return f"var<workgroup> parts: array<f32, {order.lanes * order.teams * sums}>;"


def _reduce(sums: list[str], order: Order, caps: Caps) -> str:
    """The tree of halves over the lanes: the widest steps through workgroup memory, the others by shuffles.

    Both give lane 0 the same sums in the same order.
    """
    shuffled, lines, half = _shuffled(order, caps), list[str](), order.lanes // 2
    if half >= shuffled:
        lines += [f"    parts[({p}u * TEAMS + team) * LANES + lane] = {a};" for p, a in enumerate(sums)]
        lines.append("    workgroupBarrier();")
    while half >= shuffled:
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


def _write(r: int, c: int, cols: int, order: Order, epilogue: Epilogue, place: Place, bias: bool) -> str:
    value = _mixed(r, cols) if place.mixed else _joined(r, c, order, epilogue)
    if bias:
        value = f"{value} + bias[Y_FIRST + first_row + {r}u]"
    at = f"(out_column + {c}u) * Y_STRIDE + Y_FIRST + first_row + {r}u"
    put = f"y[{at}] = {value};"
    if epilogue is Epilogue.ADD:
        put = f"y[{at}] = y[{at}] + ({value});"
    if epilogue is Epilogue.WEIGHTED_ADD:
        put = f"y[{at}] = fma(weights[(out_column + {c}u) * WEIGHT_STRIDE + WEIGHT_FIRST], {value}, y[{at}]);"
    return f"        if (first_row + {r}u < ROWS) {{ {put} }}"


def _joined(r: int, c: int, order: Order, epilogue: Epilogue) -> str:
    value = f"a_{r}_{c}"
    return f"{value} / (1.0 + exp(-{value})) * a_{r + order.rows}_{c}" if epilogue is Epilogue.SWIGLU else value


def _mixed(r: int, cols: int) -> str:
    """The columns' sums, weighted, in ascending order."""
    total = "0.0"
    for c in range(cols):
        total = f"fma(mix_{c}, a_{r}_{c}, {total})"
    return total
