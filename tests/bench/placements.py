"""Where a step's products run quickest: ``python -m tests.bench.placements [--seconds 120] [--all]``.

For each matrix and width: the usual placement and the best one found, or all that were tried, in microseconds of one
launch and as a share of the card's copy rate, then whether all gave the same bits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from app.engine.adapter import choose_adapter
from app.engine.device import Gpu
from app.engine.gguf.types import TensorType
from app.engine.placement import Epilogue, Job, Placement
from app.engine.tuning.batch import make_ready
from app.engine.tuning.search import quickest
from app.engine.tuning.stopwatch import Stopwatch
from app.engine.tuning.trial import Trial
from app.engine.weights.layout import UNIT

PLEDGE = 8 << 30

Shape = tuple[TensorType, int, int, Epilogue]
_LARGE: list[Shape] = [
    (TensorType.Q4_0, 5120, 17408, Epilogue.ADD), (TensorType.Q4_0, 34816, 5120, Epilogue.SWIGLU),
    (TensorType.Q4_0, 16480, 5120, Epilogue.STORE), (TensorType.Q4_0, 5120, 6144, Epilogue.ADD),
    (TensorType.Q4_0, 14336, 5120, Epilogue.STORE), (TensorType.Q6_K, 248320, 5120, Epilogue.STORE),
]  # fmt: skip
_SMALL: list[Shape] = [
    (kind, rows, columns, epilogue)
    for kind in (TensorType.Q4_0, TensorType.Q8_0)
    for rows, columns, epilogue in (
        (12288, 2048, Epilogue.SWIGLU), (2048, 6144, Epilogue.ADD),
        (4096, 2048, Epilogue.STORE), (2048, 2048, Epilogue.ADD),
    )
]  # fmt: skip


def jobs(widths: list[int]) -> Iterator[Job]:
    """The most telling first."""
    for width in widths:
        for kind, rows, columns, epilogue in (*_LARGE, *_SMALL):
            yield Job(kind, rows, columns // UNIT, epilogue, width, rounded=epilogue is Epilogue.SWIGLU)


def show(gpu: Gpu, watch: Stopwatch, job: Job, rate: float, *, every: bool) -> None:
    """Measures one job as a load does, and prints it."""
    began, trial = time.perf_counter(), Trial(gpu, job, PLEDGE)
    ready = make_ready(gpu, trial)
    compiled = time.perf_counter() - began
    times = ready.times(watch)
    print(f"{job.kind.name} {job.rows} x {job.units * UNIT} {job.epilogue.value}, {job.width} columns:")
    usual = next(iter(times))
    for placement in sorted(times, key=times.__getitem__) if every else dict.fromkeys((usual, quickest(times))):
        name = "usual" if placement == usual else ""
        share = trial.nbytes / times[placement] / rate / 1e9
        print(f"    {name:8} {times[placement] * 1e6:8.2f} us {share:5.0%}  {_written(placement)}")
    results = [trial.bits(placement) for placement in times]
    same = bool(results[0].any()) and all(np.array_equal(result, results[0]) for result in results)
    trial.close()
    spent = f"{len(times)} placements in {time.perf_counter() - began:.1f} s, {compiled:.1f} s before the first ran"
    print(f"    bits {'equal' if same else 'DIFFER'}; {spent}", flush=True)


def _written(placement: Placement) -> str:
    parts = placement.teams, placement.rows, placement.columns, placement.ahead
    text = "{} teams {} rows {} columns {} ahead".format(*parts)
    return f"{text}, fused" if placement.fused else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="begin no other matrix after so long")
    parser.add_argument("--width", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--all", action="store_true", help="every placement that was tried")
    parser.add_argument("--rate", type=float, default=4277.0, help="copy rate in GB/s to compare with")
    options = parser.parse_args()
    began, gpu = time.perf_counter(), Gpu.open(choose_adapter())
    watch = Stopwatch(gpu)
    for job in jobs(options.width):
        if time.perf_counter() - began > options.seconds:
            print(f"out of time before {job}")
            break
        show(gpu, watch, job, options.rate, every=options.all)
    gpu.close()


if __name__ == "__main__":
    main()
