"""A small whole model that guesses for a large one of the same tokens (spec: rooms §14.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.errors import ModelError, OutOfMemory
from app.core.prefix import common_length
from app.engine.arch import Mixer, read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.loading import roomy
from app.engine.model import Cancelled
from app.engine.options import Options, arithmetic_for, most_sequences, taken_bytes
from app.engine.types import STEP_COLUMNS, ColumnClass, Part

TOKENS = "tokenizer.ggml.tokens"


@dataclass(frozen=True)
class DraftPlan:
    """A draft model that can be loaded within ``options.pledge`` bytes."""

    file: GgufFile
    part: Part
    options: Options

    def load(self, gpu: Gpu, cancelled: Cancelled | None = None) -> DraftModel:
        """Errors as ``Engine.load``."""
        return DraftModel(Engine.load(gpu, self.file, self.part, self.options, cancelled=cancelled))


def plan_draft(large: GgufFile, part: Part, options: Options, small: GgufFile, gpu: Gpu) -> DraftPlan:
    """``small`` beside a part of ``large`` within the pledge of ``options``, with the same context where it has one.

    Raises ModelError where it cannot guess for the other, OutOfMemory where it does not fit.
    """
    config = read_config(small)
    if Mixer.DELTA in config.mixers:
        raise ModelError("A model with recurrent layers cannot take back what was wrong.")
    if small.value(TOKENS) != large.value(TOKENS) or config.vocab != read_config(large).vocab:
        raise ModelError("The small model has other tokens than the large one.")
    whole = Part(0, config.layers, embed=True, head=True)
    wanted = Options(min(options.context, config.context), 0, arithmetic=arithmetic_for(gpu))
    counts = range(most_sequences(large, part), 0, -1)
    *several, one = (_planned(small, whole, replace(wanted, sequences=count), gpu) for count in counts)
    if taken_bytes(large, part, options, gpu.info.binding) + one.options.pledge > options.pledge:
        raise OutOfMemory("There is no memory left for the small model.", "Lend more memory.")
    return next((plan for plan in several if _suits(plan, large, part, options, gpu)), one)


def _planned(small: GgufFile, whole: Part, options: Options, gpu: Gpu) -> DraftPlan:
    """With what it takes as its pledge."""
    return DraftPlan(small, whole, replace(options, pledge=taken_bytes(small, whole, options, gpu.info.binding)))


def _suits(plan: DraftPlan, large: GgufFile, part: Part, options: Options, gpu: Gpu) -> bool:
    """Whether the large model beside it can be asked by as many conversations."""
    left = replace(options, pledge=options.pledge - plan.options.pledge)
    return roomy(gpu, large, part, left).sequences >= plan.options.sequences


class DraftModel:
    """Follows a conversation a sequence, wherever that goes back to. One thread owns it, as an ``Engine``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held: list[Sequence[int]] = [() for _ in range(engine.options.sequences)]

    def guesses(self, ids: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        """At most ``count`` of what follows ``ids``; with 0 it reads all but the last.

        None past its context, or for a sequence it has no room for.
        """
        last = len(ids) - 1
        count = min(count, self._engine.options.context - last)
        if last < 0 or count < 0 or sequence >= len(self._held):
            return []
        self._read(ids[:last], sequence)
        if count == 0:
            return []
        held, self._held[sequence] = self._held[sequence], ()
        found = list(self._engine.greedy(ids[last], last, (), count, sequence))
        self._held[sequence] = [*held[:last], ids[last], *found[:-1]]
        return found

    def _read(self, ids: Sequence[int], sequence: int) -> None:
        """Computes what of ``ids`` the caches do not hold; they may hold more after it."""
        start = common_length(self._held[sequence], ids)
        missing = ids[start:]
        if not missing:
            return
        self._held[sequence] = ()
        kind = ColumnClass.STEP if len(missing) <= STEP_COLUMNS else ColumnClass.PROMPT
        self._engine.tokens(missing, start, kind, sequence)
        self._held[sequence] = ids

    def close(self) -> None:
        self._engine.close()
