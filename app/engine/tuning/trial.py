"""A product as it is measured: over so many matrices of its size that no cache holds them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError
from app.engine.device import Gpu
from app.engine.memory import Allocator, Region, Slice, upload
from app.engine.ops import fast_matvec, quantise
from app.engine.ops.fast_matvec.order import sets_of
from app.engine.ops.matvec import Activations
from app.engine.placement import Epilogue, Job, Placement
from app.engine.program import Dispatch, Program, compile_program
from app.engine.runner import Runner
from app.engine.weights.layout import UNIT, packed_bytes, stride
from app.engine.weights.matrix import Block

log = logging.getLogger(__name__)

ROTATED = 256 << 20
"""Bytes of weights between two readings of the same: more than any cache holds."""
_MOST_COPIES = 48
_PATTERN = 1 << 20
_ANY_BYTES, _HALVES = (0, 256), (0x10, 0x3C)
"""Bytes of numbers, and of scales: two of the latter are a finite half, whatever a format takes them for."""


class Trial:
    """The launches of one job. OutOfMemory where the pledge has no room for its matrices; ``close`` frees them."""

    def __init__(self, gpu: Gpu, job: Job, pledge: int) -> None:
        self.job = job
        self._gpu = gpu
        self._allocator = Allocator(gpu, pledge)
        self._runner = Runner(gpu, self._allocator)
        sizes = [size for size in packed_bytes(job.kind, job.rows, job.units * UNIT) if size]
        self.nbytes = sum(sizes)
        try:
            self._blocks = [self._block(sizes) for _ in range(min(-(-ROTATED // self.nbytes), _MOST_COPIES))]
            self._make_columns()
            self._fill()
        except BaseException:
            self.close()
            raise

    @property
    def used(self) -> int:
        """Bytes it holds."""
        return self._allocator.used

    @property
    def count(self) -> int:
        """How often its launches do the job."""
        return len(self._blocks)

    def launches(self, placement: Placement) -> Sequence[Dispatch]:
        """The job once for each matrix; with the rounding where the result is wanted as int8."""
        return [launch for block in self._blocks for launch in self._job(block, placement)]

    def programs(self, placements: Iterable[Placement]) -> dict[Placement, Program]:
        """The launches of each, compiled at the same time; without those that the driver refuses."""
        wanted = {placement: self.launches(placement) for placement in placements}
        self._gpu.prepare(launch.kernel.key for launches in wanted.values() for launch in launches)
        return {placement: program for placement, launches in wanted.items() if (program := self._compiled(launches))}

    def bits(self, placement: Placement) -> NDArray[np.uint8]:
        """What the job makes of the first matrix."""
        results = (self._out.values, self._out.scales) if self.job.rounded else (self._y.slice,)
        for result in results:
            upload(self._gpu, result, np.zeros(result.size, np.uint8))
        program = compile_program(self._gpu, self._job(self._blocks[0], placement))
        return self._runner.run([program], [(result, result.size) for result in results])

    def close(self) -> None:
        if not self._gpu.lost:
            self._allocator.free_all()

    def _compiled(self, launches: Sequence[Dispatch]) -> Program | None:
        try:
            return compile_program(self._gpu, list(launches))
        except GpuError as error:
            self._gpu.check()
            log.info("%s cannot be placed so: %s", self.job, error)
            return None

    def _job(self, block: Block, placement: Placement) -> list[Dispatch]:
        job, caps = self.job, self._gpu.caps
        if placement.fused:
            return [fast_matvec.rounded_dispatch(block, self._x, self._out, job.width, caps, placement=placement)]
        weights = self._weights if job.epilogue is Epilogue.WEIGHTED_ADD else None
        product = fast_matvec.dispatch(
            block, self._x, self._y, job.width, caps, epilogue=job.epilogue, weights=weights, placement=placement
        )
        return [product, quantise.dispatch(self._y, self._out, job.width, caps)] if job.rounded else [product]

    def _block(self, sizes: Sequence[int]) -> Block:
        streams = tuple(self._allocator.buffer(size, "measurements") for size in sizes)
        return Block(self.job.kind, 0, self.job.rows, self.job.units * UNIT, streams)

    def _make_columns(self) -> None:
        job, size = self.job, stride(self.job.rows // sets_of(self.job.epilogue))
        self._x = quantise.make_quantised(self._allocator, job.units * UNIT, job.width)
        self._y = Activations(self._allocator.buffer(job.width * size * 4, "measurements"), size)
        self._out = quantise.make_quantised(self._allocator, size, job.width)
        self._weights = Activations(self._allocator.buffer(job.width * 4, "measurements"), 1)

    def _fill(self) -> None:
        """The same numbers in every matrix, neither zero nor too large."""
        first, *others = self._blocks
        for stream, span in zip(first.streams, (_ANY_BYTES, _HALVES), strict=False):
            self._write(stream, np.random.default_rng(1).integers(*span, _PATTERN, np.uint8))
        for other in others:
            pairs = zip(first.streams, other.streams, strict=True)
            self._runner.copy([(Region(a, 0, a.size), Region(b, 0, b.size)) for a, b in pairs])
        self._write(self._x.values, np.random.default_rng(2).integers(*_ANY_BYTES, _PATTERN, np.uint8))
        for target in (self._x.scales, self._weights.slice):
            self._write(target, np.random.default_rng(3).uniform(0.01, 0.02, _PATTERN // 4).astype(np.float32))

    def _write(self, target: Slice, pattern: NDArray[np.uint8] | NDArray[np.float32]) -> None:
        """Over and over until ``target`` is full."""
        data = pattern.view(np.uint8)
        for start in range(0, target.size, data.size):
            upload(self._gpu, target, data[: target.size - start], start)
