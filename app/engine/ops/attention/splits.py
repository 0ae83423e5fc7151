"""Step columns: the keys in splits, every split of every KV head at once, then the join.

The split length is a function of the column's absolute position alone (spec: engine §8.2), so a
column has the same bits in a decode, in a verify of any width, and behind any cut of the model.
"""

from __future__ import annotations

import math

from app.engine.memory import Slice
from app.engine.ops.attention.reader import (
    QUAD_TYPE,
    quad_at,
    quad_function,
    quad_values,
    scale_at,
    scale_binding,
    word_fours,
    word_type,
    word_values,
)
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import SHUFFLES, Quantised, store_quad
from app.engine.ops.render import COLUMN_STRUCT, template, unrolled
from app.engine.ops.rope import Cache, HeadShape
from app.engine.program import Dispatch, Kernel
from app.engine.types import KvFormat
from app.engine.weights.layout import UNIT

CHUNK = 64
MAX_SPLITS = 64
MAX_GROUP = 8
THREADS = 256
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


def partial_bytes(shape: HeadShape, columns: int, splits: int) -> tuple[int, int]:
    """Bytes of the partial outputs and of their (maximum, sum) pairs."""
    heads = columns * shape.heads * splits
    return heads * shape.size * 4, heads * 8


def split_dispatches(
    records: Slice, qkv: Activations, cache: Cache, partial: Slice, state: Slice, out: Activations,
    shape: HeadShape, columns: int, splits: int, threads: int = THREADS, quantised: Quantised | None = None,
) -> list[Dispatch]:  # fmt: skip
    """Step columns, which may belong to several sequences. ``threads`` is part of the order of summation.

    With ``quantised`` the result is rounded to int8 there and ``out`` stays as it is.
    """
    group, parts = _groups(shape)
    constants = (
        ("HEADS", shape.heads), ("KV_HEADS", shape.kv_heads), ("PARTS", parts), ("Q_STRIDE", qkv.stride),
        ("SPLITS", splits), ("SCALE", 1 / math.sqrt(shape.size)),
    )  # fmt: skip
    layout = ("read", "read", "read", "read", "write", "write") + ("read",) * len(cache.extra)
    kernel = Kernel(_step(shape, cache.kind, group, threads), layout, constants, "attention")
    slices = (records, qkv.slice, cache.keys, cache.values, partial, state, *cache.extra)
    return [
        Dispatch(kernel, slices, (shape.kv_heads * parts, columns, splits)),
        _combine(records, qkv, partial, state, out, shape, columns, splits, threads, quantised),
    ]


def _combine(
    records: Slice, qkv: Activations, partial: Slice, state: Slice, out: Activations,
    shape: HeadShape, columns: int, splits: int, threads: int, quantised: Quantised | None,
) -> Dispatch:  # fmt: skip
    quads = shape.size // 4
    bands = max(1, threads // quads)
    fetched = -(-MAX_SPLITS // bands) if threads >= CHUNK else 0
    source = template("attention/combine.wgsl").substitute(
        column=COLUMN_STRUCT,
        head=shape.size,
        threads=threads,
        bands=bands,
        sums=bands * quads,
        max_splits=MAX_SPLITS,
        fetch=unrolled(fetched, _fetch_partial),
        join=_join_fetched(fetched) if fetched else _JOIN,
        split_length=_SPLIT_LENGTH,
        out_binding=_OUT_INT8 if quantised else _OUT,
        shuffles=SHUFFLES if quantised else "",
        gate_binding=_GATE.format(5 if quantised else 4) if shape.gated else "",
        gated=_gated(shape) if shape.gated else "value",
        write=store_quad("result", "at", "inside") if quantised else "        if (inside) { out[at] = result; }",
    )
    gates = (qkv.slice,) if shape.gated else ()
    outs = (quantised.values, quantised.scales) if quantised else (out.slice,)
    stride = quantised.units * UNIT if quantised else out.stride
    constants = (("HEADS", shape.heads), ("SPLITS", splits), ("OUT_STRIDE", stride))
    constants += (("Q_STRIDE", qkv.stride),) if shape.gated else ()
    layout = ("read", "read", "read", *("write" for _ in outs), *("read" for _ in gates))
    kernel = Kernel(source, layout, constants, "combine")
    return Dispatch(kernel, (records, partial, state, *outs, *gates), (shape.heads, columns, 1))


_OUT = "@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;"
_OUT_INT8 = """@group(0) @binding(3) var<storage, read_write> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> unit_scales: array<vec4<f32>>;"""
_GATE = "@group(0) @binding({}) var<storage, read> qkv: array<vec4<f32>>;"


def _gated(shape: HeadShape) -> str:
    gate = f"qkv[group.y * (Q_STRIDE / 4u) + {shape.first_gate // 4}u + group.x * QUADS + q]"
    return f"value / (vec4<f32>(1.0) + exp(-{gate}))"


def _fetch_partial(j: int) -> str:
    """Split ``j`` of this thread's band, fetched before its weight is known."""
    return f"""    let s_{j} = {j}u * BANDS + band;
    let p_{j} = partial[(first + min(s_{j}, count - 1u)) * QUADS + quad];"""


def _join_fetched(count: int) -> str:
    add = "        if (s_{0} < count) {{ sum = fma(vec4<f32>(weights[s_{0}]), p_{0}, sum); }}"
    return f"""    if (band < BANDS) {{
        var sum = vec4<f32>(0.0);
{unrolled(count, lambda j: add.format(j))}
        sums[band * QUADS + quad] = sum;
    }}"""


_JOIN = """    for (var q = quad; q < QUADS; q += THREADS) {
        var sum = vec4<f32>(0.0);
        for (var s = 0u; s < count; s++) { sum = fma(vec4<f32>(weights[s]), partial[(first + s) * QUADS + q], sum); }
        sums[q] = sum;
    }"""


def _groups(shape: HeadShape) -> tuple[int, int]:
    """Query heads a workgroup takes, and workgroups a KV head needs."""
    parts = next(p for p in range(1, shape.group + 1) if shape.group % p == 0 and shape.group // p <= MAX_GROUP)
    return shape.group // parts, parts


def _step(shape: HeadShape, kind: KvFormat, group: int, threads: int) -> str:
    quads, words = shape.size // 4, shape.size // word_values(kind)
    lanes = max(1, threads // CHUNK)
    bands, each = max(1, threads // quads), max(1, -(-quads // threads))
    batch = 2 if group in (2, 4) else 1
    fetched = -(-CHUNK // bands) if threads >= CHUNK else 0
    return template("attention/step.wgsl").substitute(
        column=COLUMN_STRUCT,
        head=shape.size,
        group=group,
        threads=threads,
        lanes=lanes,
        words=words,
        word_steps=-(-words // lanes),
        bands=bands,
        batch=batch,
        word=word_type(kind),
        quad=QUAD_TYPE[kind],
        scale_binding=scale_binding(kind, 6),
        dots=group * CHUNK * lanes,
        scores=group * CHUNK,
        eighths=group * 8,
        sums=bands * batch * quads,
        split_length=_SPLIT_LENGTH,
        value4=quad_function("value4", "values", shape, kind, values=True),
        zero=unrolled(group * each, lambda p: f"    var o_{p} = vec4<f32>(0.0);"),
        zero_dots=unrolled(group, lambda g: f"            var d_{g} = vec4<f32>(0.0);"),
        load_word=_load_word(shape, kind),
        dots_of_word=_dots(kind, group),
        store_dots=unrolled(group, _store_dot),
        join_lanes=_join([f"dots[i * LANES + {lane}u]" for lane in range(lanes)]),
        fetch=unrolled(fetched, lambda j: _fetch(shape, kind, j)),
        weigh_fetched=unrolled(
            fetched,
            lambda j: (
                f"            if (t_{j} < CHUNK) {_weigh(quad_values(kind, f'w_{j}', f'x_{j}'), f't_{j}', group)}"
            ),
        ),
        stop="0u" if fetched else "min(CHUNK, to_key - start)",
        shrink=unrolled(group * each, lambda p: f"            o_{p} *= shrink[{p // each}];"),
        weigh=unrolled(
            each, lambda e: _weigh(f"value4(rh, min(quad + {e}u * THREADS, QUADS - 1u))", "t", group, e, each)
        ),
        write=unrolled(group // batch, lambda b: _write(b, batch, each, bands)),
    )


def _load_word(shape: HeadShape, kind: KvFormat) -> str:
    text = "                let word = keys[rh * WORDS + i];"
    if kind is KvFormat.INT8:
        text += f"\n                let scale = {scale_at(shape, 'rh', 'i / 2u', values=False)};"
    return text


def _dots(kind: KvFormat, group: int) -> str:
    fours = word_fours(kind, "word", "scale")
    lines: list[str] = []
    for n, four in enumerate(fours):
        lines.append(f"                let k_{n} = {four};")
        at = f"i * {len(fours)}u + {n}u"
        lines += [f"                d_{g} = fma(k_{n}, qkv[query + {g}u * QUADS + {at}], d_{g});" for g in range(group)]
    return "\n".join(lines)


def _store_dot(g: int) -> str:
    return f"            dots[({g}u * CHUNK + t) * LANES + lane] = (d_{g}.x + d_{g}.y) + (d_{g}.z + d_{g}.w);"


def _join(terms: list[str]) -> str:
    """A fixed tree over the terms."""
    while len(terms) > 1:
        terms = [f"({a} + {b})" for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def _fetch(shape: HeadShape, kind: KvFormat, j: int) -> str:
    """Value ``j`` of this thread's band, fetched with the keys so that the softmax hides the wait."""
    row = f"(column.kv_row + min(start + t_{j}, to_key - 1u)) * KV_HEADS + kv_head"
    text = f"        let t_{j} = {j}u * BANDS + band;\n"
    text += f"        let w_{j} = {quad_at('values', shape, row, 'quad')};"
    if kind is KvFormat.INT8:
        text += f"\n        let x_{j} = {scale_at(shape, row, 'quad / 8u', values=True)};"
    return text


def _weigh(value: str, key: str, group: int, e: int = 0, each: int = 1) -> str:
    lines = [f"let v = {value};"]
    for g in range(group):
        o = f"o_{g * each + e}"
        lines.append(f"{o} = fma(vec4<f32>(scores[{g}u * CHUNK + {key}]), v, {o});")
    return "{\n" + "\n".join(f"                {line}" for line in lines) + "\n            }"


def _write(b: int, batch: int, each: int, bands: int) -> str:
    """Adds the bands of heads ``b * batch`` on in ascending order and writes them."""
    stores = unrolled(batch * each, lambda p: _store_band(p // each, p % each, b * batch * each + p))
    return f"""    if (band < BANDS) {{
{stores}
    }}
    workgroupBarrier();
    for (var i = thread; i < BATCH * QUADS; i += THREADS) {{
        var sum = sums[i];
        for (var n = 1u; n < BANDS; n++) {{ sum += sums[n * BATCH * QUADS + i]; }}
        let head = first_head + {b * batch}u + i / QUADS;
        partial[((group_id.y * HEADS + head) * SPLITS + group_id.z) * QUADS + i % QUADS] = sum;
    }}
    workgroupBarrier();"""


def _store_band(j: int, e: int, o: int) -> str:
    return f"""        if (quad + {e}u * THREADS < QUADS) {{
            sums[(band * BATCH + {j}u) * QUADS + quad + {e}u * THREADS] = o_{o};
        }}"""
