"""Choosing among logits on the GPU: the best one, or all that can be among the 64 best."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.memory import Slice
from app.engine.ops.mask import FORBIDDEN
from app.engine.ops.matvec import Activations
from app.engine.ops.render import COLUMN_STRUCT, template
from app.engine.program import Dispatch, Kernel
from app.engine.types import Candidates

SCAN = 4096
KEEP = 64
ROOM = 1024
HEADER_WORDS = 8
SPACE_WORDS = HEADER_WORDS + 2 * ROOM

# Larger floats have larger keys; what is not finite has key 0.
_ORDERED = """fn ordered(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    if ((bits & 0x7f800000u) == 0x7f800000u) { return 0u; }
    return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}"""


# What a scan finds in its 4096 logits.
_SCAN = """struct Scan {
    key: u32,
    id: u32,
    broken: u32,
    spare: u32,
    peak: f32,
    total: f32,
    spare_a: u32,
    spare_b: u32,
}"""


@dataclass(frozen=True)
class Selection:
    """Buffers of the selection: a scan every 4096 logits, thread maxima, and a result block a column."""

    scans: Slice
    maxima: Slice
    result: Slice
    stops: Slice


def scans_of(vocab: int) -> int:
    return -(-vocab // SCAN)


def best_dispatches(
    logits: Activations, records: Slice, selection: Selection, vocab: int, columns: int, *, advance: bool
) -> list[Dispatch]:
    """The best id of each column; ``advance`` also makes its record that of the next token."""
    scans = scans_of(vocab)
    scan = Kernel(
        template("select/scan.wgsl").substitute(ordered=_ORDERED, scan=_SCAN),
        ("read", "write", "write"),
        (("VOCAB", vocab), ("STRIDE", logits.stride), ("SCANS", scans)),
        "scan",
    )
    best = Kernel(
        template("select/best.wgsl").substitute(column=COLUMN_STRUCT, scan=_SCAN),
        ("read", "write", "write", "read"),
        (("SCANS", scans), ("SPACE", SPACE_WORDS), ("ADVANCE", int(advance))),
        "best",
    )
    return [
        Dispatch(scan, (logits.slice, selection.scans, selection.maxima), (scans, columns, 1)),
        Dispatch(best, (selection.scans, selection.result, records, selection.stops), (columns, 1, 1)),
    ]


def collect_dispatches(logits: Activations, selection: Selection, vocab: int, columns: int) -> list[Dispatch]:
    """After ``best_dispatches``: everything that can be among the 64 best."""
    threshold = Kernel(
        template("select/threshold.wgsl").substitute(),
        ("read", "write"),
        (("MAXIMA", scans_of(vocab) * 64), ("SPACE", SPACE_WORDS)),
        "threshold",
    )
    collect = Kernel(
        template("select/collect.wgsl").substitute(ordered=_ORDERED),
        ("read", "write"),
        (("VOCAB", vocab), ("STRIDE", logits.stride), ("SPACE", SPACE_WORDS), ("ROOM", ROOM)),
        "collect",
    )
    return [
        Dispatch(threshold, (selection.maxima, selection.result), (columns, 1, 1)),
        Dispatch(collect, (logits.slice, selection.result), (-(-vocab // 256), columns, 1)),
    ]


@dataclass(frozen=True)
class Best:
    """What one column's result block says. ``count`` pairs were collected, maybe more than there was room for."""

    token: int
    non_finite: int
    log_sum_exp: float
    live: bool
    count: int
    position: int


def read_best(block: NDArray[np.uint32]) -> Best:
    """The header of a result block."""
    peak, total = (float(x) for x in block[2:4].view(np.float32))
    log_sum = peak + math.log(total) if total > 0 else -math.inf
    return Best(int(block[0]), int(block[1]), log_sum, bool(block[4]), int(block[5]), int(block[7]))


def read_candidates(block: NDArray[np.uint32], row: NDArray[np.float32] | None = None) -> Candidates:
    """The 64 best of a column, from its block or, when too many were collected, from the whole ``row``."""
    best = read_best(block)
    if row is None:
        pairs = block[HEADER_WORDS : HEADER_WORDS + 2 * best.count].reshape(-1, 2)
        ids, values = pairs[:, 0].astype(np.int32), np.ascontiguousarray(pairs[:, 1]).view(np.float32)
    else:
        ids = np.flatnonzero(np.isfinite(row)).astype(np.int32)
        values = row[ids]
    allowed = values > FORBIDDEN
    ids, values = ids[allowed], values[allowed]
    order = np.lexsort((ids, -values.astype(np.float64)))[:KEEP]
    return Candidates(ids[order], values[order], best.log_sum_exp, best.non_finite)
