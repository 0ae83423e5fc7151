"""A few jobs measured together: the compiler has done with all of them before the GPU begins, and it never pauses."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

import numpy as np

from app.core.errors import OutOfMemory
from app.engine.device import Gpu
from app.engine.placement import Job, Placement, Placements
from app.engine.program import Program
from app.engine.tuning.search import candidates, quickest
from app.engine.tuning.stopwatch import Stopwatch
from app.engine.tuning.trial import Trial

log = logging.getLogger(__name__)

COMPILING = 1.0
"""Seconds after which no other job joins a batch."""

Over = Callable[[], bool]


@dataclass(frozen=True)
class Ready:
    """A job whose launches wait to be timed; the usual placement comes first."""

    trial: Trial
    programs: dict[Placement, Program]

    def times(self, watch: Stopwatch) -> dict[Placement, float]:
        """Seconds of the job once, in each placement."""
        raced = watch.race(list(self.programs.values()))
        return {p: seconds / self.trial.count for p, seconds in zip(self.programs, raced, strict=True)}


def measured_batch(gpu: Gpu, watch: Stopwatch, jobs: deque[Job], pledge: int, over: Over) -> Placements:
    """What is quickest for the next of ``jobs``, which it takes; nothing for those not measured when it is ``over``."""
    with ExitStack() as trials:
        batch = list(_batch(gpu, jobs, pledge, over, trials))
        times = [(ready, ready.times(watch)) for ready in batch if not over()]
        return {job: place for ready, found in times for job, place in _chosen(gpu, ready.trial, found).items()}


def make_ready(gpu: Gpu, trial: Trial) -> Ready:
    """Compiles all that is to be compared, as far as the driver takes it."""
    return Ready(trial, trial.programs(candidates(trial.job, gpu.caps)))


def _batch(gpu: Gpu, jobs: deque[Job], pledge: int, over: Over, trials: ExitStack) -> Iterator[Ready]:
    """As many as are compiled in time, and have room beside each other; who has none alone is passed over."""
    until, used = time.monotonic() + COMPILING, 0
    while jobs and not over() and (not used or time.monotonic() < until):
        try:
            trial = trials.enter_context(closing(Trial(gpu, jobs[0], pledge - used)))
        except OutOfMemory:
            if used:
                return
            jobs.popleft()
            continue
        jobs.popleft()
        used += trial.used
        ready = make_ready(gpu, trial)
        if ready.programs:
            yield ready


def _chosen(gpu: Gpu, trial: Trial, times: dict[Placement, float]) -> Placements:
    """The quickest placement; where it rounds apart also that of the same product without its rounding."""
    job, usual, best = trial.job, next(iter(times)), quickest(times)
    if best != usual and not np.array_equal(trial.bits(best), trial.bits(usual)):
        log.warning("%s as %s has other bits than as %s: %s errs", job, best, usual, gpu.info.name)
        best = usual
    apart = {} if best.fused or not job.rounded else {replace(job, rounded=False): best}
    return {job: best, **apart}
