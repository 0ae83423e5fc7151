"""How long launches take on the GPU itself, by its own clock."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import wgpu

from app.engine.device import Gpu
from app.engine.program import Dispatch, Program, compile_program

_FIRST_BURN, _BURN = 0.4, 0.03
"""Seconds of work before a measurement: clocks take a quarter of a second to rise."""


class Stopwatch:
    """Times one compute pass; needs an adapter with timestamp queries."""

    def __init__(self, gpu: Gpu) -> None:
        if "timestamp-query" not in gpu.caps.features:
            raise SystemExit("This GPU has no timestamp queries.")
        self._gpu = gpu
        self._burn = _FIRST_BURN
        device = gpu.device
        self._queries = device.create_query_set(type="timestamp", count=2)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._resolved = device.create_buffer(size=256, usage=usage)

    def time(self, dispatches: Sequence[Dispatch], repeats: int = 5) -> float:
        """Median seconds of all dispatches in one pass, with the clocks up."""
        program = compile_program(self._gpu, list(dispatches))
        warm, spent = self._once(program), 0.0
        while spent < self._burn:
            spent += max(self._once(program), 1e-4)
        self._burn = _BURN
        return statistics.median([self._once(program) for _ in range(repeats)] or [warm])

    def _once(self, program: Program) -> float:
        encoder = self._gpu.device.create_command_encoder()
        writes = {"query_set": self._queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1}
        work = encoder.begin_compute_pass(timestamp_writes=writes)
        for i, dispatch in enumerate(program.dispatches):
            work.set_pipeline(program.kept[2 * i])
            work.set_bind_group(0, program.kept[2 * i + 1])
            work.dispatch_workgroups(*dispatch.grid)
        work.end()
        encoder.resolve_query_set(self._queries, 0, 2, self._resolved, 0)
        self._gpu.device.queue.submit([encoder.finish()])
        start, end = self._gpu.device.queue.read_buffer(self._resolved, 0, 16).cast("Q")
        return (end - start) * 1e-9
