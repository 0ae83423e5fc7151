"""Prompt columns: tiles of query rows against tiles of keys, and a form for processors that imitate a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.engine.memory import Slice
from app.engine.ops.attention.reader import QUAD_TYPE, quad_function, scale_binding
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template, unrolled
from app.engine.ops.rope import Cache, HeadShape
from app.engine.program import Dispatch, Kernel
from app.engine.types import KvFormat

KEYS = 64
"""Keys of a tile; their tiles begin at absolute multiples of it."""
_THREADS = 128
_OUT_ROWS = 8
_SOFTWARE_THREADS = 8
_ROWWISE_KEYS = 4
_ROWWISE_HEAD = 64
"""Larger heads would take llvmpipe's compiler tens of seconds, for nothing: the tiles are as quick there."""
_MANY_TILES = 256


@dataclass(frozen=True)
class Tile:
    """``rows`` query rows; ``depth`` values of queries and keys, or ``stage`` floats of values, at a time."""

    rows: int
    depth: int
    stage: int

    @property
    def shared(self) -> int:
        """Bytes of workgroup memory."""
        return (self.rows * KEYS + self.stage) * 4


PORTABLE = Tile(rows=32, depth=16, stage=2048)
LARGE = Tile(rows=64, depth=32, stage=4096)


def tile_for(shape: HeadShape, columns: int, shared: int) -> Tile:
    """The tile for ``shared`` bytes of workgroup memory; either gives the same bits.

    The large one is up to a tenth faster where enough of them keep a GPU busy, and slower elsewhere.
    """
    many = columns * shape.heads >= _MANY_TILES * LARGE.rows
    return LARGE if many and shape.size <= 128 and LARGE.shared <= shared else PORTABLE


def whole_dispatch(
    records: Slice, qkv: Activations, cache: Cache, out: Activations, shape: HeadShape, columns: int,
    threads: int, shared: int = PORTABLE.shared,
) -> Dispatch:  # fmt: skip
    """Prompt columns of one sequence, in the form for the adapter that ``threads`` and ``shared`` bytes stand for."""
    rowwise = threads == _SOFTWARE_THREADS and shape.size <= _ROWWISE_HEAD
    tile = None if rowwise else tile_for(shape, columns, shared)
    return tile_dispatch(records, qkv, cache, out, shape, columns, tile)


def tile_dispatch(
    records: Slice, qkv: Activations, cache: Cache, out: Activations, shape: HeadShape, columns: int,
    tile: Tile | None,
) -> Dispatch:  # fmt: skip
    """Prompt columns of one sequence: those live lie at one KV row. Without a ``tile`` the form without barriers."""
    source = _tiled(shape, qkv, cache.kind, tile) if tile else _rowwise(shape, qkv, cache.kind)
    rows = tile.rows if tile else _SOFTWARE_THREADS
    constants = (
        ("COLUMNS", columns), ("KV_HEADS", shape.kv_heads), ("Q_STRIDE", qkv.stride), ("OUT_STRIDE", out.stride),
        ("SCALE", 1 / math.sqrt(shape.size)),
    )  # fmt: skip
    layout = ("read", "read", "read", "read", "write") + ("read",) * len(cache.extra)
    slices = (records, qkv.slice, cache.keys, cache.values, out.slice, *cache.extra)
    kernel = Kernel(source, layout, constants, "attention")
    return Dispatch(kernel, slices, (-(-columns * shape.group // rows), shape.kv_heads, 1))


_BINDINGS = """override COLUMNS: u32;
override KV_HEADS: u32;
override Q_STRIDE: u32;
override OUT_STRIDE: u32;
override SCALE: f32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<{quad}>;
@group(0) @binding(3) var<storage, read> values: array<{quad}>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;
{scales}"""


def _common(shape: HeadShape, kind: KvFormat) -> dict[str, object]:
    return {
        "column": COLUMN_STRUCT,
        "head": shape.size,
        "group": shape.group,
        "bindings": _BINDINGS.format(quad=QUAD_TYPE[kind], scales=scale_binding(kind, 5)),
        "key4": quad_function("key4", "keys", shape, kind, values=False),
        "value4": quad_function("value4", "values", shape, kind, values=True),
    }


def _tiled(shape: HeadShape, qkv: Activations, kind: KvFormat, tile: Tile) -> str:
    row_quads, out_threads = tile.rows // 4, _THREADS // _OUT_ROWS
    scores, outs = row_quads * KEYS // 4 // _THREADS, row_quads // _OUT_ROWS
    each = -(-shape.size // 4 // out_threads)
    sums = outs * 4 * each
    staged = min(KEYS, 1 << int(math.log2(tile.stage // shape.size)))
    tasks = -(-(tile.rows + KEYS) // 4 * tile.depth // 4 // _THREADS)
    values = -(-staged * shape.size // 4 // _THREADS)
    return template("attention/tile.wgsl").substitute(
        _common(shape, kind),
        rows=tile.rows,
        threads=_THREADS,
        row_quads=row_quads,
        depth_quads=tile.depth // 4,
        staged=staged,
        fetch_first=unrolled(tasks, lambda n: f"        var f_{n} = {_fetch(n, '0u')};"),
        fetch_next=unrolled(tasks, lambda n: f"            f_{n} = {_fetch(n, 'depth + DEPTH_QUADS')};"),
        stage_scores=unrolled(tasks, lambda n: f"            put(thread + {n}u * THREADS, f_{n});"),
        fetch_values=unrolled(values, lambda n: f"        var n_{n} = {_fetch_value(n, '0u')};"),
        fetch_next_values=unrolled(values, lambda n: f"            n_{n} = {_fetch_value(n, 'from_key + STAGED')};"),
        stage_values=unrolled(values, _stage_value),
        score_quads=scores,
        stage=tile.stage // 4,
        weights=tile.rows * KEYS // 4,
        score_positions=unrolled(scores, _score_positions),
        zero=unrolled(outs, _zero_rows) + "\n" + unrolled(sums, lambda p: f"    var o_{p} = vec4<f32>(0.0);"),
        zero_scores=unrolled(scores * 4, lambda p: f"        var s_{p} = vec4<f32>(0.0);"),
        score=unrolled(scores, _score),
        store_scores=unrolled(scores * 4, _store_score),
        raise_top=unrolled(outs, _raise_top),
        total=unrolled(outs, _total) + "\n" + unrolled(sums, lambda p: _shrink(p, each)),
        weigh=_weigh(outs, each),
        store=unrolled(outs * 4, lambda r: _store_row(r, each, shape, qkv)),
    )


def _fetch(n: int, depth: str) -> str:
    return f"fetch(thread + {n}u * THREADS, first_row, kv_row, start, seen, kv_head, {depth})"


def _fetch_value(n: int, from_key: str) -> str:
    task = f"(thread + {n}u * THREADS)"
    row = f"kv_row + min(start + min({from_key} + {task} / QUADS, 63u), seen - 1u)"
    return f"value4(({row}) * KV_HEADS + kv_head, {task} % QUADS)"


def _stage_value(n: int) -> str:
    task = f"thread + {n}u * THREADS"
    return f"            if ({task} < STAGED * QUADS) {{ stage[{task}] = n_{n}; }}"


def _score_positions(q: int) -> str:
    return f"    let positions_{q} = positions(first_row + (score_row + {q}u * SCORE_ROWS) * 4u);"


def _zero_rows(q: int) -> str:
    return f"    var peak_{q} = vec4<f32>(-3.0e38);\n    var total_{q} = vec4<f32>(0.0);"


def _score(q: int) -> str:
    lines = [f"                let q_{q} = stage[k * ROW_QUADS + score_row + {q}u * SCORE_ROWS];"]
    lines += [f"                s_{q * 4 + j} = fma(q_{q}, vec4<f32>(key[{j}]), s_{q * 4 + j});" for j in range(4)]
    return "\n".join(lines)


def _store_score(p: int) -> str:
    q, j = p // 4, p % 4
    return f"""        weights[(key_quad * 4u + {j}u) * ROW_QUADS + score_row + {q}u * SCORE_ROWS] =
            select(vec4<f32>(-3.0e38), s_{p} * SCALE, vec4<u32>(start + key_quad * 4u + {j}u) <= positions_{q});"""


def _raise_top(q: int) -> str:
    return f"""        let top_{q} = max(peak_{q}, eight_top(out_row + {q * _OUT_ROWS}u));
        let worth_{q} = worth(peak_{q}, top_{q});
        peak_{q} = top_{q};"""


def _total(q: int) -> str:
    return f"        total_{q} = fma(total_{q}, worth_{q}, eight_sum(8u * ROW_QUADS + out_row + {q * _OUT_ROWS}u));"


def _shrink(p: int, each: int) -> str:
    row = p // each
    return f"        o_{p} *= worth_{row // 4}[{row % 4}];"


def _weigh(outs: int, each: int) -> str:
    """One key: the weights of this thread's rows times this thread's values."""
    lines = [f"let p_{q} = weights[(from_key + k) * ROW_QUADS + out_row + {q * _OUT_ROWS}u];" for q in range(outs)]
    lines += [f"let v_{e} = stage[k * QUADS + min(out_quad + {e}u * OUT_THREADS, QUADS - 1u)];" for e in range(each)]
    for p in range(outs * 4 * each):
        row, e = p // each, p % each
        lines.append(f"o_{p} = fma(vec4<f32>(p_{row // 4}[{row % 4}]), v_{e}, o_{p});")
    return "\n".join(f"                {line}" for line in lines)


def _store_row(r: int, each: int, shape: HeadShape, qkv: Activations) -> str:
    total = f"total_{r // 4}[{r % 4}]"
    stores = "\n".join(
        f"        if ({_out_quad(e)} < QUADS) {{ {_store(shape, qkv, f'o_{r * each + e} / {total}', _out_quad(e))} }}"
        for e in range(each)
    )
    return f"""    let row_{r} = first_row + (out_row + {r // 4 * _OUT_ROWS}u) * 4u + {r % 4}u;
    if (row_{r} < COLUMNS * GROUP) {{
        let column = row_{r} / GROUP;
        let head = kv_head * GROUP + row_{r} % GROUP;
{stores}
    }}"""


def _out_quad(e: int) -> str:
    return f"out_quad + {e}u * OUT_THREADS"


def _store(shape: HeadShape, qkv: Activations, value: str, quad: str) -> str:
    """Writes ``quad`` of ``head`` and ``column``, gated where the family has gates."""
    if shape.gated:
        gate = f"qkv[column * {qkv.stride // 4}u + {shape.first_gate // 4}u + head * QUADS + {quad}]"
        value = f"({value}) / (vec4<f32>(1.0) + exp(-{gate}))"
    return f"out[column * (OUT_STRIDE / 4u) + head * QUADS + {quad}] = {value};"


def _rowwise(shape: HeadShape, qkv: Activations, kind: KvFormat) -> str:
    quads, keys = shape.size // 4, range(_ROWWISE_KEYS)
    return template("attention/rowwise.wgsl").substitute(
        _common(shape, kind),
        keys_each=_ROWWISE_KEYS,
        query=unrolled(quads, lambda i: f"    let q_{i} = qkv[query + {i}u];\n    var o_{i} = vec4<f32>(0.0);"),
        score=unrolled(_ROWWISE_KEYS, lambda t: _row_score(t, quads)),
        top="max(" * _ROWWISE_KEYS + "peak" + "".join(f", s_{t})" for t in keys),
        weigh=unrolled(
            _ROWWISE_KEYS, lambda t: f"        let p_{t} = select(0.0, exp(s_{t} - top), start + {t}u < own);"
        ),
        sum=" + ".join(f"p_{t}" for t in keys),
        accumulate=unrolled(quads, _row_accumulate),
        store=unrolled(quads, lambda i: f"    {_store(shape, qkv, f'o_{i} / total', f'{i}u')}"),
    )


def _row_score(t: int, quads: int) -> str:
    lines = [
        f"let rh_{t} = (kv_row + min(start + {t}u, seen - 1u)) * KV_HEADS + kv_head;",
        f"var d_{t} = key4(rh_{t}, 0u) * q_0;",
        *(f"d_{t} = fma(key4(rh_{t}, {i}u), q_{i}, d_{t});" for i in range(1, quads)),
        f"let s_{t} = select(-3.0e38, ((d_{t}.x + d_{t}.y) + (d_{t}.z + d_{t}.w)) * SCALE, start + {t}u < own);",
    ]
    return "\n".join(f"        {line}" for line in lines)


def _row_accumulate(i: int) -> str:
    lines = [f"o_{i} *= worth;"]
    lines += [f"o_{i} = fma(vec4<f32>(p_{t}), value4(rh_{t}, {i}u), o_{i});" for t in range(_ROWWISE_KEYS)]
    return "\n".join(f"        {line}" for line in lines)
