"""The lasting state of one sequence: which bytes it is, copies of it on the GPU, and its way out and in.

A snapshot holds what positions below its end left behind: keys and values of every attention layer
and of the draft block, each recurrent layer's matrix, and the last projections that its convolution
still looks back at. It is taken of a settled sequence, so nothing waits to be replayed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import PooledError, StateError
from app.engine.arch import ModelConfig
from app.engine.gguf import GgufFile
from app.engine.memory import Allocator, Arena, Region, Slice, upload
from app.engine.ops.delta import DeltaShape, DeltaState
from app.engine.ops.matvec import Tuning
from app.engine.ops.rope import Cache, HeadShape, cache_bytes, scale_bytes
from app.engine.options import Options
from app.engine.runner import Runner
from app.engine.types import Part
from app.engine.workspace import Workspace

STATE_VERSION = 1
"""Raised whenever a kernel's order of summation, or the layout of a state, changes."""
PURPOSE = "saved conversations"
_PIECE = 32 << 20


def state_signature(file: GgufFile, part: Part, options: Options, tuning: Tuning) -> str:
    """Names everything that a state's bits depend on: states of another signature must be refused."""
    order = tuning.lanes, tuning.grain, tuning.fused_norm
    facts = STATE_VERSION, file.identity(), part, options.kv.value, options.arithmetic.value, order
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Snapshot:
    """A copy on the GPU, a slice for each of ``regions``, of the positions below ``end``."""

    end: int
    parts: tuple[Slice, ...]


def regions(config: ModelConfig, space: Workspace, sequence: int, end: int) -> list[Region]:
    """Everything the positions below ``end`` of a sequence left behind, in a fixed order."""
    caches = [*space.states, *([space.draft.cache] if space.draft else [])]
    found: list[Region] = []
    for state in caches:
        if isinstance(state, Cache):
            found += _cache_regions(state, config.heads, sequence * space.context, end)
        else:
            assert config.delta
            found += _delta_regions(state, config.delta, sequence, end)
    return found


def _cache_regions(cache: Cache, shape: HeadShape, first: int, end: int) -> list[Region]:
    if not end:
        return []
    row, scales = cache_bytes(shape, 1, cache.kind), scale_bytes(shape, 1)
    found = [Region(part, first * row, end * row) for part in (cache.keys, cache.values)]
    return [*found, Region(cache.scales, first * scales, end * scales)] if cache.scales else found


def _delta_regions(state: DeltaState, shape: DeltaShape, sequence: int, end: int) -> list[Region]:
    matrix, row = shape.inner * shape.size * 4, shape.channels * 4
    past = range(max(end - shape.taps + 1, 0), end)
    rows = [Region(state.ring, (sequence * shape.ring + p % shape.ring) * row, row) for p in past]
    return [Region(state.matrix, sequence * matrix, matrix), *rows]


class Snapshots:
    """Named copies of sequences on the GPU. Each takes its bytes of the pledge until it is dropped."""

    def __init__(self, config: ModelConfig, space: Workspace, allocator: Allocator, runner: Runner) -> None:
        self._config = config
        self._space = space
        self._allocator = allocator
        self._runner = runner
        self._saved: dict[str, Snapshot] = {}

    @property
    def names(self) -> list[str]:
        return list(self._saved)

    def save(self, name: str, sequence: int, end: int) -> None:
        """Copies a settled sequence; OutOfMemory past the pledge, an older one of this name is then lost."""
        self.drop(name)
        found = regions(self._config, self._space, sequence, end)
        arena = Arena(self._allocator, [part.size for part in found], PURPOSE)
        saved = Snapshot(end, tuple(arena.take(part.size) for part in found))
        self._saved[name] = saved
        try:
            self._runner.copy(list(zip(found, _whole(saved), strict=True)))
        except PooledError:
            self.drop(name)
            raise

    def check(self, name: str) -> None:
        """StateError if there is none of this name."""
        if name not in self._saved:
            raise StateError(f"There is no saved state {name}.", "Start again from the beginning.")

    def load(self, name: str, sequence: int) -> int:
        """Copies a saved sequence back and returns its end; StateError if there is none of this name."""
        self.check(name)
        saved = self._saved[name]
        found = regions(self._config, self._space, sequence, saved.end)
        self._runner.copy(list(zip(_whole(saved), found, strict=True)))
        return saved.end

    def drop(self, name: str) -> None:
        """Forgets a saved sequence; nothing happens if there is none."""
        saved = self._saved.pop(name, None)
        for part in saved.parts if saved else ():
            self._allocator.free(part)

    def read(self, sequence: int, end: int) -> Iterator[NDArray[np.uint8]]:
        """A settled sequence's bytes in pieces."""
        for part in regions(self._config, self._space, sequence, end):
            for start in range(0, part.size, _PIECE):
                piece = Slice(part.slice.buffer, part.slice.offset + part.offset + start, 0, part.slice.owner)
                yield self._runner.run([], [(piece, min(_PIECE, part.size - start))])

    def write(self, sequence: int, end: int, data: NDArray[np.uint8]) -> None:
        """The bytes ``read`` gave, into a sequence; StateError if they are not as many."""
        parts = regions(self._config, self._space, sequence, end)
        if data.size != sum(part.size for part in parts):
            raise StateError("A saved state is not complete.", "Start again from the beginning.")
        place = 0
        for part in parts:
            target = Slice(part.slice.buffer, part.slice.offset + part.offset, part.size, part.slice.owner)
            upload(self._allocator.gpu, target, data[place : place + part.size])
            place += part.size


def _whole(saved: Snapshot) -> list[Region]:
    return [Region(part, 0, part.size) for part in saved.parts]
