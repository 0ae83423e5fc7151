"""Placements chosen by measuring, for the products that a model has (ADR 14)."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from app.engine.arch import read_config
from app.engine.device import Caps, Gpu
from app.engine.gguf import GgufFile
from app.engine.model import Cancelled, plan_weights
from app.engine.options import Options
from app.engine.placement import Job, Placement
from app.engine.programs import STEP_WIDTHS
from app.engine.tuning.batch import measured_batch
from app.engine.tuning.jobs import step_jobs
from app.engine.tuning.shelf import remember, remembered
from app.engine.tuning.stopwatch import Stopwatch, has_clock
from app.engine.types import Arithmetic, Part

__all__ = ["BUDGET", "tuned"]

log = logging.getLogger(__name__)

BUDGET = 3.0
"""Seconds a load may take longer for it; what was not measured by then is at the next load."""


def tuned(
    gpu: Gpu, file: GgufFile, part: Part, options: Options, cancelled: Cancelled = lambda: False,
    budget: float = BUDGET,
) -> Caps:  # fmt: skip
    """What a part's kernels are to be rendered for: with placements known from before, and those measured now.

    To be called while the pledge is still free. ModelError for a part the file does not have, DeviceLost.
    """
    if options.arithmetic is not Arithmetic.FAST or not has_clock(gpu):
        return gpu.caps
    plan = plan_weights(file, read_config(file), part, gpu.caps.binding)
    known = remembered(gpu)
    missing = [job for job in step_jobs(plan, STEP_WIDTHS, head=part.head) if job not in known]
    found = _measured(gpu, missing, options.pledge, budget, cancelled) if missing else {}
    if found:
        remember(gpu, {**known, **found})
    return replace(gpu.caps, placements={**known, **found})


def _measured(
    gpu: Gpu, jobs: Sequence[Job], pledge: int, budget: float, cancelled: Cancelled
) -> dict[Job, Placement]:  # fmt: skip
    watch, deadline, found = Stopwatch(gpu), time.monotonic() + budget, dict[Job, Placement]()
    waiting = deque(jobs)

    def over() -> bool:
        return cancelled() or time.monotonic() > deadline

    while waiting and not over():
        found |= measured_batch(gpu, watch, waiting, pledge, over)
    log.info("%d of %d products were placed", len(found), len(jobs))
    return found
