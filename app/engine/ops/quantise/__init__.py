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
    """``x`` rounded to int8, normalised before where ``norm`` is given.

    Each workgroup sums the squares of the whole column for itself: one that rounded all of it took longer.
    """
    quads = out.units * _QUADS
    groups = -(-quads // THREADS)
    source = template("quantise/kernel.wgsl").substitute(
        norm_binding=_NORM_BINDING if norm else "",
        norm=_norm(groups, caps) if norm else "",
        join=SHUFFLES if fuses(caps) else _SHARED,
        write=store_quad("v", "to", "at < QUADS"),
    )
    constants: list[tuple[str, int | float]] = [("QUADS", quads), ("STRIDE", x.stride // 4)]
    if norm:
        constants += [("SIZE", float(norm.size)), ("EPS", norm.epsilon)]
    slices = (x.slice, out.values, out.scales, *((norm.weights,) if norm else ()))
    layout = ("read", "write", "write", *(("read",) if norm else ()))
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

    Needs ``unit_top`` and ``half_sums``, the two buffers and ``thread``: eight neighbouring threads hold a unit.
    All threads of a workgroup come here together, as browsers demand of shuffles.
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


def _norm(rounds: int, caps: Caps) -> str:
    return f"""    var squares = vec4<f32>(0.0);
{unrolled(rounds, _square)}
    joined[thread] = (squares.x + squares.y) + (squares.z + squares.w);
    workgroupBarrier();
{_SHUFFLED_SUM if caps.subgroup >= _LANES else _SHARED_SUM}
    v = (v * inverseSqrt(sum / SIZE + EPS)) * norm_weights[min(at, QUADS - 1u)];"""


def _square(i: int) -> str:
    return f"""    let all_{i} = quad(group.y, thread + {i * THREADS}u);
    squares = fma(all_{i}, all_{i}, squares);"""


_LANES = 32

_SHARED_SUM = f"""    for (var half = {THREADS // 2}u; half > 0u; half >>= 1u) {{
        if (thread < half) {{ joined[thread] += joined[thread + half]; }}
        workgroupBarrier();
    }}
    let sum = joined[0];
    workgroupBarrier();"""

# The same tree of halves; every 32 threads join it for themselves.
_SHUFFLED_SUM = """    let lane = thread & 31u;
    var sum = ((joined[lane] + joined[lane + 128u]) + (joined[lane + 64u] + joined[lane + 192u]))
        + ((joined[lane + 32u] + joined[lane + 160u]) + (joined[lane + 96u] + joined[lane + 224u]));
""" + unrolled(5, lambda i: f"    sum += subgroupShuffleXor(sum, {16 >> i}u);")


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
