"""Rotary embedding, per-head norms and the store into the key and value caches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError
from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template, unrolled
from app.engine.program import Dispatch, Kernel
from app.engine.types import KvFormat

SCALE_GROUP = 32
"""Values of an INT8 cache that share a scale."""
_THREADS = 64


@dataclass(frozen=True)
class HeadShape:
    """Attention heads: ``heads`` queries share ``kv_heads`` keys of ``size``, of which ``rotary`` values turn.

    ``interleaved`` pairs (2i, 2i + 1) as llama files do, else (i, i + rotary / 2). A qkv column holds
    queries, keys and values; with ``gated`` also a gate for every query value (spec: engine §4.3).
    """

    heads: int
    kv_heads: int
    size: int
    rotary: int
    interleaved: bool
    epsilon: float
    gated: bool = False

    @property
    def kv_size(self) -> int:
        return self.kv_heads * self.size

    @property
    def group(self) -> int:
        return self.heads // self.kv_heads

    @property
    def first_gate(self) -> int:
        """Where the gates begin in a qkv column."""
        return (self.heads + 2 * self.kv_heads) * self.size

    @property
    def qkv_size(self) -> int:
        """Values of a qkv column."""
        return self.first_gate + (self.heads * self.size if self.gated else 0)


@dataclass(frozen=True)
class Cache:
    """Keys and values of one layer, [rows, kv heads, head size].

    INT8 caches have ``scales`` besides: [rows, kv heads, keys and values, head size / 32] float32.
    """

    keys: Slice
    values: Slice
    kind: KvFormat
    scales: Slice | None = None

    @property
    def extra(self) -> tuple[Slice, ...]:
        return (self.scales,) if self.scales else ()


def check_cache(shape: HeadShape, kind: KvFormat) -> None:
    """ModelError where heads of this size cannot be kept so."""
    if kind is KvFormat.INT8 and shape.size % SCALE_GROUP:
        raise ModelError(
            f"int8 caches need heads of a multiple of {SCALE_GROUP} values; this model's have {shape.size}.",
            "Keep the context in f16.",
        )


def cache_bytes(shape: HeadShape, rows: int, kind: KvFormat) -> int:
    """Bytes of the keys (or of the values) of one layer, without scales."""
    return rows * shape.kv_size * kind.bytes


def scale_bytes(shape: HeadShape, rows: int) -> int:
    """Bytes of the scales of one layer's INT8 keys and values together."""
    return rows * 2 * (shape.kv_size // SCALE_GROUP) * 4


def quantise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What an INT8 cache gives back for ``values`` [..., head size]."""
    groups = values.reshape(*values.shape[:-1], -1, SCALE_GROUP)
    scale = np.abs(groups).max(axis=-1, keepdims=True) / 127
    steps = np.rint(groups / np.where(scale > 0, scale, 1.0))
    return (steps * scale).reshape(values.shape)


def angles(shape: HeadShape, base: float, positions: int, factors: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """[positions, rotary / 2, 2] cosine and sine, computed in float64: the same on every device."""
    pairs = np.arange(shape.rotary // 2, dtype=np.float64)
    frequencies = base ** (-2.0 * pairs / shape.rotary)
    if factors is not None:
        frequencies = frequencies / factors.astype(np.float64)
    theta = np.arange(positions, dtype=np.float64)[:, None] * frequencies[None, :]
    return np.stack([np.cos(theta), np.sin(theta)], axis=2).astype(np.float32)


def dispatch(
    records: Slice,
    qkv: Activations,
    cache: Cache,
    table: Slice,
    shape: HeadShape,
    columns: int,
    norms: tuple[Slice, Slice] | None = None,
) -> Dispatch:
    """``norms`` are the per-head weights of queries and keys, where the family has them."""
    source = _source(shape, cache.kind, norms is not None)
    constants: list[tuple[str, int | float]] = [
        ("HEADS", shape.heads), ("KV_HEADS", shape.kv_heads), ("ROTARY", shape.rotary), ("STRIDE", qkv.stride),
    ]  # fmt: skip
    if norms:
        constants.append(("EPS", shape.epsilon))
    slices = (records, qkv.slice, cache.keys, cache.values, table, *cache.extra, *(norms or ()))
    layout = ("read", "write", "write", "write", "read") + ("write",) * len(cache.extra) + ("read",) * len(norms or ())
    kernel = Kernel(source, layout, tuple(constants), "rope")
    return Dispatch(kernel, slices, (shape.heads + 2 * shape.kv_heads, columns, 1))


def reference(heads: NDArray[np.float64], position: int, shape: HeadShape, base: float) -> NDArray[np.float64]:
    """[heads, size] turned to ``position`` in float64."""
    half = shape.rotary // 2
    theta = position * base ** (-2.0 * np.arange(half) / shape.rotary)
    pairs = np.arange(half)
    i, j = (2 * pairs, 2 * pairs + 1) if shape.interleaved else (pairs, pairs + half)
    out = heads.copy()
    out[:, i] = heads[:, i] * np.cos(theta) - heads[:, j] * np.sin(theta)
    out[:, j] = heads[:, i] * np.sin(theta) + heads[:, j] * np.cos(theta)
    return out


def _source(shape: HeadShape, kind: KvFormat, norm: bool) -> str:
    each = -(-shape.size // _THREADS)
    first, second, is_second, pair = _INTERLEAVED if shape.interleaved else _HALVES
    return template("rope/kernel.wgsl").substitute(
        column=COLUMN_STRUCT,
        head=shape.size,
        cache="f32" if kind is KvFormat.F32 else "u32",
        packing=f"{4 // kind.bytes}u",
        store=_STORE[kind],
        scale_binding=_SCALE_BINDING if kind is KvFormat.INT8 else "",
        first_of_pair=first,
        second_of_pair=second,
        is_second=is_second,
        angles=unrolled(each, lambda e: _angle(e, pair)),
        rotate=unrolled(each, _rotate),
        norm_bindings=_norm_bindings(6 if kind is KvFormat.INT8 else 5) if norm else "",
        norm_function=_NORM_FUNCTION if norm else "",
        norm="    normalise(thread, is_query, is_key);" if norm else "",
    )


_INTERLEAVED = ("d & ~1u", "d | 1u", "(d & 1u) == 1u", "d / 2u")
_HALVES = ("d % (ROTARY / 2u)", "d % (ROTARY / 2u) + ROTARY / 2u", "d >= ROTARY / 2u", "d % (ROTARY / 2u)")
"""Places of a pair's first and second value, whether ``d`` is the second, and the number of its pair."""


def _angle(e: int, pair: str) -> str:
    return f"""    let d_{e} = thread + {e}u * THREADS;
    let turns_{e} = d_{e} < ROTARY && head < HEADS + KV_HEADS;
    var angle_{e} = vec2<f32>(1.0, 0.0);
    if (turns_{e}) {{ let d = d_{e}; angle_{e} = table[column.position * (ROTARY / 2u) + {pair}]; }}"""


def _rotate(e: int) -> str:
    return f"""    if (d_{e} < HEAD) {{
        var v_{e} = raw[d_{e}];
        if (turns_{e}) {{ v_{e} = rotated(d_{e}, angle_{e}); }}
        if (is_query) {{ qkv[base + d_{e}] = v_{e}; }} else {{ turned[d_{e}] = v_{e}; }}
    }}"""


_STORE = {
    KvFormat.F32: "let word = turned[d];",
    KvFormat.F16: "let word = pack2x16float(vec2<f32>(turned[2u * d], turned[2u * d + 1u]));",
    KvFormat.INT8: """var top = 0.0;
            for (var i = 0u; i < 32u; i++) { top = max(top, abs(turned[d / 8u * 32u + i])); }
            let filled = top > 1e-30;
            let place = (row * 2u + select(1u, 0u, is_key)) * (HEAD / 32u) + d / 8u;
            if (d % 8u == 0u) { scales[place] = select(0.0, top / 127.0, filled); }
            let step = select(0.0, 127.0 / top, filled);
            let four = vec4<f32>(turned[4u * d], turned[4u * d + 1u], turned[4u * d + 2u], turned[4u * d + 3u]);
            let word = pack4xI8(vec4<i32>(clamp(round(four * step), vec4<f32>(-127.0), vec4<f32>(127.0))));""",
}
_SCALE_BINDING = "@group(0) @binding(5) var<storage, read_write> scales: array<f32>;"


def _norm_bindings(first: int) -> str:
    return f"""@group(0) @binding({first}) var<storage, read> query_norm: array<f32>;
@group(0) @binding({first + 1}) var<storage, read> key_norm: array<f32>;"""


_NORM_FUNCTION = """fn normalise(thread: u32, is_query: bool, is_key: bool) {
    var squares = 0.0;
    for (var d = thread; d < HEAD; d += THREADS) {
        squares = fma(raw[d], raw[d], squares);
    }
    sums[thread] = squares;
    workgroupBarrier();
    if (thread < 8u) { eighths[thread] = eight_sums(thread * 8u); }
    workgroupBarrier();
    let square = ((eighths[0] + eighths[1]) + (eighths[2] + eighths[3]))
        + ((eighths[4] + eighths[5]) + (eighths[6] + eighths[7]));
    let inverse = inverseSqrt(square / f32(HEAD) + EPS);
    for (var d = thread; d < HEAD; d += THREADS) {
        if (is_query) { raw[d] = (raw[d] * inverse) * query_norm[d]; }
        if (is_key) { raw[d] = (raw[d] * inverse) * key_norm[d]; }
    }
    workgroupBarrier();
}

fn eight_sums(i: u32) -> f32 {
    return ((sums[i] + sums[i + 1u]) + (sums[i + 2u] + sums[i + 3u]))
        + ((sums[i + 4u] + sums[i + 5u]) + (sums[i + 6u] + sums[i + 7u]));
}"""
