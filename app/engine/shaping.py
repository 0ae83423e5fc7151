"""Logits changed on the processor before the best are taken: for biases, which reach ids outside the 64 best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.ops.mask import FORBIDDEN
from app.engine.ops.mask import reference as masked
from app.engine.ops.select import KEEP
from app.engine.types import Candidates, Floats, Shaping


def best_of(rows: Floats, shaping: Shaping) -> list[Candidates]:
    """The 64 best of each of ``rows`` [n, vocab] after the bias and the mask; ids past the vocabulary have no bias."""
    shaped = rows.copy()
    for token, bias in (shaping.bias or {}).items():
        if 0 <= token < rows.shape[1]:
            shaped[:, token] += np.float32(bias)
    if shaping.masks is not None:
        shaped = masked(shaped, shaping.masks)
    return [_best(row, raw) for row, raw in zip(shaped, rows, strict=True)]


def _best(row: Floats, raw: Floats) -> Candidates:
    broken = int(np.count_nonzero(~np.isfinite(raw)))
    if broken:
        return Candidates(np.zeros(0, np.int32), np.zeros(0, np.float32), -np.inf, broken)
    ids = _with_ties(row, np.argpartition(-row, min(KEEP, len(row) - 1))[:KEEP])
    ids = ids[row[ids] > FORBIDDEN]
    order = np.lexsort((ids, -row[ids].astype(np.float64)))[:KEEP]
    best = ids[order].astype(np.int32)
    return Candidates(best, row[best], _log_sum_exp(row), 0)


def _log_sum_exp(row: Floats) -> float:
    peak = float(row.max())
    return peak + float(np.log(np.exp(row.astype(np.float64) - peak).sum()))


def _with_ties(row: Floats, ids: NDArray[np.intp]) -> NDArray[np.intp]:
    """Everything as good as the last of them, because of equals the smaller id comes first."""
    return np.flatnonzero(row >= row[ids].min())
