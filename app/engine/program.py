"""A program is data: kernels, what they are bound to, and in which order they run (design: contracts)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from app.engine.device import Gpu, PipelineKey
from app.engine.memory import Allocator, Slice

MAX_GRID = 65_535

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Kernel:
    """A WGSL source with entry point ``main``; ``layout`` is "read" or "write" a binding."""

    source: str
    layout: tuple[str, ...]
    constants: tuple[tuple[str, int | float], ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        """Thousands of launches share a few dozen sources of some 10 KB; each is kept once."""
        object.__setattr__(self, "source", sys.intern(self.source))

    @property
    def key(self) -> PipelineKey:
        """What its pipeline is known by."""
        return self.source, self.layout, self.constants


@dataclass(frozen=True)
class Dispatch:
    """One launch of a kernel over ``grid`` workgroups with its buffers in binding order."""

    kernel: Kernel
    slices: tuple[Slice, ...]
    grid: Grid


@dataclass
class Program:
    """Launches ready to be encoded. Holds every GPU object it names, so that none is freed under the raw runner."""

    dispatches: list[Dispatch]
    launches: list[tuple[Any, Any, int, int, int]] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    owners: set[Allocator] = field(default_factory=set)


def spread(count: int) -> Grid:
    """A grid of ``count`` workgroups whose index is ``x + y * num_workgroups.x``."""
    rows = -(-count // MAX_GRID)
    return -(-count // rows), rows, 1


def compile_program(gpu: Gpu, dispatches: list[Dispatch]) -> Program:
    """Compiles and binds every dispatch; GpuError if the driver refuses one."""
    program = Program(dispatches)
    for dispatch in dispatches:
        kernel = dispatch.kernel
        pipeline = gpu.pipeline(kernel.key)
        group = gpu.bind(kernel.layout, [s.triple for s in dispatch.slices])
        program.kept += [pipeline, group]
        program.owners.update(s.owner for s in dispatch.slices if s.owner)
        program.launches.append((pipeline._internal, group._internal, *dispatch.grid))
    return program
