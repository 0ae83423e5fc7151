"""How long launches take on the GPU itself, by its own clock, its frequency up."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np
import wgpu

from app.core.errors import GpuError
from app.engine.device import Gpu
from app.engine.memory import Allocator
from app.engine.program import Dispatch, Program, compile_program
from app.engine.runner import Runner

_MOST_RUNS = 1024
_PAUSE = 0.02
"""Seconds without work after which the frequency may have fallen."""
_RISE, _LONGEST = 0.3, 1.0
"""Seconds of work until it stands again; after the longest it is left at that."""
_BURST, _ALIKE = 8, 1.02
"""Two medians of so many runs that are alike but for this factor show that it stands."""
_RACE, _FEWEST, _MOST = 0.06, 3, 25
"""Seconds that a race should take, and how often each takes part in it."""


def has_clock(gpu: Gpu) -> bool:
    """Whether launches can be timed, and their times say anything: a processor's are no one's but its own."""
    return "timestamp-query" in gpu.caps.features and not gpu.caps.software


class Stopwatch:
    """Times programs as one compute pass each. GpuError where the adapter has no timestamp queries.

    Times are seconds where the GPU's clock counts nanoseconds, and can be compared with each other everywhere.
    """

    def __init__(self, gpu: Gpu) -> None:
        if "timestamp-query" not in gpu.caps.features:
            raise GpuError(f"{gpu.info.name} has no timestamp queries.")
        self._gpu = gpu
        self._runner = Runner(gpu, Allocator(gpu, 0))
        self._worked = 0.0
        device = gpu.device
        self._queries = device.create_query_set(type="timestamp", count=2 * _MOST_RUNS)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._resolved = device.create_buffer(size=16 * _MOST_RUNS, usage=usage)

    def time(self, dispatches: Sequence[Dispatch], repeats: int = 5) -> float:
        """Median seconds of all dispatches in one pass."""
        program = compile_program(self._gpu, list(dispatches))
        self.warm(program)
        return statistics.median(self._runs([program] * repeats))

    def race(self, programs: Sequence[Program]) -> list[float]:
        """Median seconds of each. They run in turn, so that whatever the frequency does happens to all of them."""
        rounds = int(_RACE / self.warm(programs[0])) // len(programs)
        times = self._runs([*programs] * min(max(rounds, _FEWEST), _MOST))
        return [statistics.median(times[i :: len(programs)]) for i in range(len(programs))]

    def warm(self, program: Program) -> float:
        """Runs until the frequency stands; seconds of a run then."""
        began = time.monotonic()
        least = _RISE if began - self._worked > _PAUSE else 0.0
        last = self._burst(program)
        while time.monotonic() - began < _LONGEST:
            before, last = last, self._burst(program)
            if time.monotonic() - began >= least and max(before, last) <= _ALIKE * min(before, last):
                break
        return last

    def _burst(self, program: Program) -> float:
        return max(statistics.median(self._runs([program] * _BURST)), 1e-6)

    def _runs(self, programs: Sequence[Program]) -> list[float]:
        """Seconds of each, started one behind another without a pause."""
        for i, program in enumerate(programs):
            self._runner.start(program, self._queries, 2 * i)
        encoder = self._gpu.device.create_command_encoder()
        encoder.resolve_query_set(self._queries, 0, 2 * len(programs), self._resolved, 0)
        self._gpu.device.queue.submit([encoder.finish()])
        read = self._gpu.device.queue.read_buffer(self._resolved, 0, 16 * len(programs))
        self._worked = time.monotonic()
        stamps = np.frombuffer(read, np.int64).reshape(-1, 2)
        return [float(took) * 1e-9 for took in stamps[:, 1] - stamps[:, 0]]
