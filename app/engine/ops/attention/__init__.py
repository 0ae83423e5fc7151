"""Causal flash attention over the caches: split over the keys for step columns, whole for prompt columns.

The split length is a function of the column's absolute position alone (spec: engine §8.2), so a
column has the same bits in a decode, in a verify of any width, and behind any cut of the model.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError
from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template, unrolled
from app.engine.ops.rope import Cache, HeadShape
from app.engine.program import Dispatch, Kernel
from app.engine.types import KvFormat

CHUNK = 64
MAX_SPLITS = 64
MAX_GROUP = 8
THREADS = 64
SOFTWARE_THREADS = 8
"""On a processor that imitates a GPU a barrier costs more than the work between two of them."""

_SPLIT_LENGTH = f"""fn split_length(seen: u32) -> u32 {{
    let share = (seen + {MAX_SPLITS - 1}u) / {MAX_SPLITS}u;
    return max({CHUNK}u, (share + {CHUNK - 1}u) / {CHUNK}u * {CHUNK}u);
}}"""


def split_length(seen: int) -> int:
    """Keys a split takes when ``seen`` keys are attended."""
    share = -(-seen // MAX_SPLITS)
    return max(CHUNK, -(-share // CHUNK) * CHUNK)


def splits_within(bucket: int) -> int:
    """The most splits any position below ``bucket`` has."""
    return min(MAX_SPLITS, -(-bucket // CHUNK))


def check_shape(shape: HeadShape) -> None:
    """ModelError for head sizes the kernel does not lay out."""
    if (
        shape.size % 8
        or shape.size > 512
        or (shape.size // 2 > THREADS and shape.size // 2 % THREADS)
        or shape.heads % shape.kv_heads
    ):
        raise ModelError(f"Attention heads of size {shape.size} are not supported.", "Pick another model.")


def partial_bytes(shape: HeadShape, columns: int, splits: int) -> tuple[int, int]:
    """Bytes of the partial outputs and of their (maximum, sum) pairs."""
    heads = columns * shape.heads * splits
    return heads * shape.size * 4, heads * 8


def split_dispatches(
    records: Slice, qkv: Activations, cache: Cache, partial: Slice, state: Slice, out: Activations,
    shape: HeadShape, columns: int, splits: int, threads: int = THREADS,
) -> list[Dispatch]:  # fmt: skip
    """Step columns: every split of every KV head at once, then the join."""
    group, parts = _groups(shape)
    constants = [*_constants(shape, parts, qkv, out), ("SPLITS", splits)]
    layout = ("read", "read", "read", "read", "write", "write")
    kernel = Kernel(_source(shape, cache.kind, group, threads, split=True), layout, tuple(constants), "attention")
    combine = Kernel(
        template("attention/combine.wgsl").substitute(
            column=COLUMN_STRUCT, head=shape.size, split_length=_SPLIT_LENGTH
        ),
        ("read", "read", "read", "write"),
        (("HEADS", shape.heads), ("SPLITS", splits), ("OUT_STRIDE", out.stride)),
        "combine",
    )
    slices = (records, qkv.slice, cache.keys, cache.values, partial, state)
    return [
        Dispatch(kernel, slices, (shape.kv_heads * parts, columns, splits)),
        Dispatch(combine, (records, partial, state, out.slice), (shape.heads, columns, 1)),
    ]


def whole_dispatch(
    records: Slice, qkv: Activations, cache: Cache, out: Activations, shape: HeadShape, columns: int,
    threads: int = THREADS,
) -> Dispatch:  # fmt: skip
    """Prompt columns: one workgroup a column and KV head walks all its keys."""
    group, parts = _groups(shape)
    constants = _constants(shape, parts, qkv, out)
    layout = ("read", "read", "read", "read", "write")
    kernel = Kernel(_source(shape, cache.kind, group, threads, split=False), layout, tuple(constants), "attention")
    slices = (records, qkv.slice, cache.keys, cache.values, out.slice)
    return Dispatch(kernel, slices, (shape.kv_heads * parts, columns, 1))


def reference(q: NDArray[np.float64], k: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """One column in float64: q [heads, size], k and v [seen, kv heads, size] -> [heads, size]."""
    per_kv = q.shape[0] // k.shape[1]
    out = np.empty_like(q)
    for head in range(q.shape[0]):
        scores = k[:, head // per_kv] @ q[head] / math.sqrt(q.shape[1])
        weights = np.exp(scores - scores.max())
        out[head] = weights / weights.sum() @ v[:, head // per_kv]
    return out


def _groups(shape: HeadShape) -> tuple[int, int]:
    """Query heads a workgroup takes, and workgroups a KV head needs."""
    parts = next(p for p in range(1, shape.group + 1) if shape.group % p == 0 and shape.group // p <= MAX_GROUP)
    return shape.group // parts, parts


def _constants(shape: HeadShape, parts: int, qkv: Activations, out: Activations) -> list[tuple[str, int | float]]:
    return [
        ("HEADS", shape.heads), ("KV_HEADS", shape.kv_heads), ("PARTS", parts), ("Q_STRIDE", qkv.stride),
        ("OUT_STRIDE", out.stride), ("SCALE", 1 / math.sqrt(shape.size)),
    ]  # fmt: skip


def _source(shape: HeadShape, kind: KvFormat, group: int, threads: int, *, split: bool) -> str:
    half = kind is KvFormat.F16
    bands = max(1, threads // (shape.size // 2))
    each = max(1, -(-shape.size // 2 // threads))
    return template("attention/kernel.wgsl").substitute(
        column=COLUMN_STRUCT,
        head=shape.size,
        threads=threads,
        group=group,
        bands=bands,
        sums=bands * group * shape.size,
        scores=group * CHUNK,
        cache4="vec2<u32>" if half else "vec4<f32>",
        cache2="u32" if half else "vec2<f32>",
        read_key=_READ_KEY if half else "keys[at]",
        read_value="unpack2x16float(values[at])" if half else "values[at]",
        state_binding=_STATE_BINDING if split else "",
        split_length=_SPLIT_LENGTH if split else "",
        range=_SPLIT_RANGE if split else "    let from_key = 0u;\n    let to_key = seen;",
        zero=unrolled(group * each, lambda p: f"    var o_{p} = vec2<f32>(0.0);"),
        zero_dots=unrolled(group, lambda g: f"            var d_{g} = vec4<f32>(0.0);"),
        dots=unrolled(group, lambda g: f"                d_{g} = fma(k, qkv[query + {g}u * (HEAD / 4u) + i], d_{g});"),
        store_dots=unrolled(group, _store_dot),
        shrink=unrolled(group * each, lambda p: f"            o_{p} *= shrink[{p // each}];"),
        weigh=unrolled(each, lambda e: _weigh(e, each, group)),
        store_bands=unrolled(group * each, lambda p: _store_band(p, each)),
        write=_SPLIT_WRITE if split else _WHOLE_WRITE,
        write_state=_SPLIT_STATE if split else "",
    )


def _store_dot(g: int) -> str:
    return f"""            let s_{g} = select(-3.0e38, ((d_{g}.x + d_{g}.y) + (d_{g}.z + d_{g}.w)) * SCALE, inside);
            scores[{g}u * CHUNK + t] = s_{g};
            tree[{g}u * CHUNK + t] = s_{g};"""


def _weigh(e: int, each: int, group: int) -> str:
    lines = [f"                let v_{e} = value2(at + {e}u * THREADS);"]
    for g in range(group):
        o = f"o_{g * each + e}"
        lines.append(f"                {o} = fma(vec2<f32>(scores[{g}u * CHUNK + t]), v_{e}, {o});")
    return "\n".join(lines)


def _store_band(p: int, each: int) -> str:
    at = f"(band * GROUP + {p // each}u) * HEAD + (pair + {p % each}u * THREADS) * 2u"
    return f"        sums[{at}] = o_{p}.x;\n        sums[{at} + 1u] = o_{p}.y;"


_READ_KEY = "vec4<f32>(unpack2x16float(keys[at].x), unpack2x16float(keys[at].y))"
_STATE_BINDING = "@group(0) @binding(5) var<storage, read_write> state: array<vec2<f32>>;"
_SPLIT_RANGE = """    let length = split_length(seen);
    let from_key = min(group_id.z * length, seen);
    let to_key = min(from_key + length, seen);
    if (group_id.z * length >= seen) { return; }"""
_SPLIT_WRITE = "        out[((group_id.y * HEADS + head) * SPLITS + group_id.z) * HEAD + d % HEAD] = sum;"
_WHOLE_WRITE = "        out[group_id.y * OUT_STRIDE + head * HEAD + d % HEAD] = sum / total[d / HEAD];"
_SPLIT_STATE = """    for (var g = thread; g < GROUP; g += THREADS) {
        let at = (group_id.y * HEADS + first_head + g) * SPLITS + group_id.z;
        state[at] = vec2<f32>(peak[g], total[g]);
    }"""
