"""Rotary embedding, per-head norms and the store into the key and value caches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template
from app.engine.program import Dispatch, Kernel
from app.engine.types import KvFormat


@dataclass(frozen=True)
class HeadShape:
    """Attention heads: ``heads`` queries share ``kv_heads`` keys of ``size``, of which ``rotary`` values turn.

    ``interleaved`` pairs (2i, 2i + 1) as llama files do, else (i, i + rotary / 2).
    """

    heads: int
    kv_heads: int
    size: int
    rotary: int
    interleaved: bool
    epsilon: float

    @property
    def kv_size(self) -> int:
        return self.kv_heads * self.size

    @property
    def group(self) -> int:
        return self.heads // self.kv_heads


@dataclass(frozen=True)
class Cache:
    """Keys and values of one layer, [rows, kv heads, head size]."""

    keys: Slice
    values: Slice
    kind: KvFormat


def cache_bytes(shape: HeadShape, rows: int, kind: KvFormat) -> int:
    """Bytes of the keys (or of the values) of one layer."""
    return rows * shape.kv_size * (4 if kind is KvFormat.F32 else 2)


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
    slices = (records, qkv.slice, cache.keys, cache.values, table, *(norms or ()))
    layout = ("read", "write", "write", "write", "read") + ("read",) * len(norms or ())
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
    half = kind is KvFormat.F16
    first, second = ("2u * pair", "2u * pair + 1u") if shape.interleaved else ("pair", "pair + ROTARY / 2u")
    return template("rope/kernel.wgsl").substitute(
        column=COLUMN_STRUCT,
        head=shape.size,
        cache="u32" if half else "f32",
        packing="2u" if half else "1u",
        packed="pack2x16float(vec2<f32>(turned[2u * d], turned[2u * d + 1u]))" if half else "turned[d]",
        first_of_pair=first,
        second_of_pair=second,
        norm_bindings=_NORM_BINDINGS if norm else "",
        norm_function=_NORM_FUNCTION if norm else "",
        norm="    normalise(thread, is_query, is_key);" if norm else "",
    )


_NORM_BINDINGS = """@group(0) @binding(5) var<storage, read> query_norm: array<f32>;
@group(0) @binding(6) var<storage, read> key_norm: array<f32>;"""

_NORM_FUNCTION = """fn normalise(thread: u32, is_query: bool, is_key: bool) {
    var squares = 0.0;
    for (var d = thread; d < HEAD; d += THREADS) {
        squares = fma(raw[d], raw[d], squares);
    }
    sums[thread] = squares;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (thread < half) { sums[thread] += sums[thread + half]; }
        workgroupBarrier();
    }
    let inverse = inverseSqrt(sums[0] / f32(HEAD) + EPS);
    for (var d = thread; d < HEAD; d += THREADS) {
        if (is_query) { raw[d] = (raw[d] * inverse) * query_norm[d]; }
        if (is_key) { raw[d] = (raw[d] * inverse) * key_norm[d]; }
    }
    workgroupBarrier();
}"""
