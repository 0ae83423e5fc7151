"""Activations as int8: 32 values share a scale, for products with packed integer weights (spec: wgpu §3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.device import Caps
from app.engine.memory import Buffers, Slice
from app.engine.ops.matvec import Activations, Norm
from app.engine.ops.render import template, unrolled
from app.engine.program import Dispatch, Kernel
from app.engine.weights.layout import UNIT, units

THREADS = 256
_QUADS = UNIT // 4


@dataclass(frozen=True)
class Quantised:
    """[columns, units] of 32 int8 values, and (scale, scale * sum of each half, scale * sum) beside them.

    ``units`` counts a column's.
    """

    values: Slice
    scales: Slice
    units: int

    def sized(self, size: int) -> Quantised:
        """The same buffers for columns of ``size`` values."""
        return Quantised(self.values, self.scales, units(size))


def make_quantised(buffers: Buffers, size: int, columns: int) -> Quantised:
    """Room for ``columns`` of up to ``size`` values."""
    count = columns * units(size)
    return Quantised(buffers.buffer(count * UNIT, "scratch"), buffers.buffer(count * 16, "scratch"), units(size))


def dispatch(x: Activations, out: Quantised, columns: int, caps: Caps, norm: Norm | None = None) -> Dispatch:
    """``x`` rounded to int8, normalised before where ``norm`` is given."""
    quads = out.units * _QUADS
    rounds = -(-quads // THREADS) if norm else 1
    source = template("quantise/kernel.wgsl").substitute(
        norm_binding=_NORM_BINDING if norm else "",
        load=unrolled(rounds, _load),
        norm=_norm(rounds) if norm else "",
        weigh=unrolled(rounds, _weigh) if norm else "",
        join=SHUFFLES if fuses(caps) else _SHARED,
        store=unrolled(rounds, _store),
    )
    constants: list[tuple[str, int | float]] = [("QUADS", quads), ("STRIDE", x.stride // 4)]
    if norm:
        constants += [("SIZE", float(norm.size)), ("EPS", norm.epsilon)]
    slices = (x.slice, out.values, out.scales, *((norm.weights,) if norm else ()))
    layout = ("read", "write", "write", *(("read",) if norm else ()))
    groups = 1 if norm else -(-quads // THREADS)
    return Dispatch(Kernel(source, layout, tuple(constants), "quantise"), slices, (groups, columns, 1))


def reference(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is left of [columns, size] values after the rounding."""
    blocks = x.reshape(len(x), -1, UNIT)
    scale = np.abs(blocks).max(axis=2, keepdims=True) / 127.0
    return (np.round(blocks / np.where(scale > 0, scale, 1.0)) * scale).reshape(x.shape)


def fuses(caps: Caps) -> bool:
    """Whether another kernel's eight neighbouring threads can round what they have just computed."""
    return caps.subgroup >= _QUADS


def store_quad(value: str, at: str, inside: str) -> str:
    """WGSL that rounds one vector of a column and, where ``inside``, stores it at quad ``at``.

    Needs ``SHUFFLES``, the two buffers and ``thread``: eight neighbouring threads hold a unit. All threads of a
    workgroup come here together, as browsers demand of shuffles.
    """
    return f"""        let top = abs({value});
        let scale = unit_top(max(max(top.x, top.y), max(top.z, top.w)), thread) / 127.0;
        let word = pack4xI8(vec4<i32>(round({value} * select(0.0, 1.0 / scale, scale > 0.0))));
        let halves = half_sums(f32(dot4I8Packed(word, 0x01010101u)), thread);
        if ({inside}) {{
            values[{at}] = word;
            if ((thread & 7u) == 0u) {{
                unit_scales[({at}) / 8u] =
                    vec4<f32>(scale, scale * halves.x, scale * halves.y, scale * (halves.x + halves.y));
            }}
        }}"""


def _load(i: int) -> str:
    return f"""    let at_{i} = first + {i * THREADS}u;
    var v_{i} = select(vec4<f32>(0.0), x[group.y * STRIDE + min(at_{i}, QUADS - 1u)], at_{i} < QUADS);"""


def _norm(rounds: int) -> str:
    return f"""    var squares = vec4<f32>(0.0);
{unrolled(rounds, lambda i: f"    squares = fma(v_{i}, v_{i}, squares);")}
    joined[thread] = (squares.x + squares.y) + (squares.z + squares.w);
    workgroupBarrier();
    for (var half = {THREADS // 2}u; half > 0u; half >>= 1u) {{
        if (thread < half) {{ joined[thread] += joined[thread + half]; }}
        workgroupBarrier();
    }}
    let inverse = inverseSqrt(joined[0] / SIZE + EPS);
    workgroupBarrier();"""


def _weigh(i: int) -> str:
    return f"    v_{i} = (v_{i} * inverse) * norm_weights[min(at_{i}, QUADS - 1u)];"


def _store(i: int) -> str:
    """All threads take part in the joins; only those inside the column write."""
    return f"""    let top_{i} = abs(v_{i});
    let scale_{i} = unit_top(max(max(top_{i}.x, top_{i}.y), max(top_{i}.z, top_{i}.w)), thread) / 127.0;
    let word_{i} = pack4xI8(vec4<i32>(round(v_{i} * select(0.0, 1.0 / scale_{i}, scale_{i} > 0.0))));
    let half_{i} = half_sums(f32(dot4I8Packed(word_{i}, 0x01010101u)), thread);
    if (at_{i} < QUADS) {{
        values[group.y * QUADS + at_{i}] = word_{i};
        if ((thread & 7u) == 0u) {{
            let sums_{i} = vec3<f32>(half_{i}, half_{i}.x + half_{i}.y);
            unit_scales[(group.y * QUADS + at_{i}) / 8u] = vec4<f32>(scale_{i}, scale_{i} * sums_{i});
        }}
    }}"""


_NORM_BINDING = "@group(0) @binding(3) var<storage, read> norm_weights: array<vec4<f32>>;"

SHUFFLES = """// The largest of a unit's eight threads.
fn unit_top(own: f32, thread: u32) -> f32 {
    let two = max(own, subgroupShuffleXor(own, 1u));
    let four = max(two, subgroupShuffleXor(two, 2u));
    return max(four, subgroupShuffleXor(four, 4u));
}

// The sums of a unit's first four and last four threads, for its first thread.
fn half_sums(own: f32, thread: u32) -> vec2<f32> {
    let two = own + subgroupShuffleXor(own, 1u);
    let four = two + subgroupShuffleXor(two, 2u);
    return vec2<f32>(four, subgroupShuffleXor(four, 4u));
}"""

_SHARED = """// The largest of a unit's eight threads.
fn unit_top(own: f32, thread: u32) -> f32 {
    joined[thread] = own;
    workgroupBarrier();
    let base = thread & ~7u;
    var top = 0.0;
    for (var i = 0u; i < 8u; i++) { top = max(top, joined[base + i]); }
    workgroupBarrier();
    return top;
}

// The sums of a unit's first four and last four threads.
fn half_sums(own: f32, thread: u32) -> vec2<f32> {
    joined[thread] = own;
    workgroupBarrier();
    let base = thread & ~7u;
    let first = (joined[base] + joined[base + 1u]) + (joined[base + 2u] + joined[base + 3u]);
    let last = (joined[base + 4u] + joined[base + 5u]) + (joined[base + 6u] + joined[base + 7u]);
    workgroupBarrier();
    return vec2<f32>(first, last);
}"""
