"""Plain values that cross the engine's border."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]

STEP_COLUMNS = 16
"""The widest step: a token and up to 15 drafts."""
MAX_STOPS = 31
"""Ids that end a greedy answer on the GPU."""


class ColumnClass(Enum):
    """How columns are computed; decides bits, so it is always said and never guessed from the width.

    STEP columns (decode, verify) have the same bits at any width; PROMPT columns (prefill) have the
    same bits under any chunking.
    """

    STEP = "step"
    PROMPT = "prompt"


class Arithmetic(Enum):
    """EXACT multiplies weights with float activations, FAST with int8 ones where the format has whole numbers.

    Each keeps the rules of the two classes of columns; their results differ by the rounding (ADR 8).
    """

    EXACT = "exact"
    FAST = "fast"


class KvFormat(Enum):
    """How keys and values are kept. INT8: 32 values share one f32 scale."""

    F32 = "f32"
    F16 = "f16"
    INT8 = "int8"

    @property
    def bytes(self) -> int:
        """Bytes of a value, scales apart."""
        return {KvFormat.F32: 4, KvFormat.F16: 2, KvFormat.INT8: 1}[self]


@dataclass(frozen=True)
class Part:
    """A half-open layer range [lo, hi) of a model, with or without its embedding, output head and draft block."""

    lo: int
    hi: int
    embed: bool = False
    head: bool = False
    draft: bool = False

    @property
    def layers(self) -> int:
        return self.hi - self.lo


@dataclass(frozen=True)
class Candidates:
    """The 64 best ids of one column, best first (value descending, id ascending on ties).

    ``log_sum_exp`` is over the whole vocabulary; ``non_finite`` counts NaN and infinity in the row.
    """

    ids: Ids
    logits: Floats
    log_sum_exp: float
    non_finite: int

    @property
    def best(self) -> int:
        return int(self.ids[0])


@dataclass(frozen=True)
class Step:
    """A token of one sequence at ``position``, and drafts after it: 1 to 16 ``ids``."""

    ids: Sequence[int]
    position: int
    sequence: int = 0


@dataclass(frozen=True)
class Stepped:
    """What a step's columns gave: the 64 best of each, and the trunk's [n, hidden] states after them if asked for."""

    candidates: list[Candidates]
    states: Floats | None


@dataclass(frozen=True)
class Shaping:
    """What is done to columns' logits before the best are taken.

    ``masks`` [n, words] uint32: id i may follow where bit i % 32 of word i // 32 is set; None: all may.
    ``bias`` is added to the logits of some ids.
    """

    masks: NDArray[np.uint32] | None = None
    bias: Mapping[int, float] | None = None


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn. ``temperature`` 0 is greedy; the uniform is a function of (seed, position)."""

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
