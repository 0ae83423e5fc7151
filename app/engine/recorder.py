"""Steps recorded before they are asked for: recording takes the processor about as long as running takes the GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import PooledError
from app.engine.program import Program
from app.engine.runner import Copy, Encoded, Runner, Ticket

MOST_KEPT = 24
"""Steps of a trunk, a head and a draft block in the widths that are used."""
WORTH_RECORDING = 3
"""Times a step was run before the next one like it is recorded ahead."""
FORGOTTEN_AFTER = 2_000
"""Steps without one like it, after which a recording gives its place to another."""

Key = tuple[tuple[int, ...], tuple[Copy, ...]]


@dataclass
class _Known:
    """A kind of step: how often it ran, when last, and what was recorded for the next one."""

    programs: tuple[Program, ...]
    runs: int = 0
    last: int = 0
    ahead: Encoded | None = None


class Recorder:
    """Submits steps, and while the GPU runs one records it once more: the next is mostly like it.

    A recording that is never submitted leaks in wgpu-core 29 (its command buffer is not given back to its pool; some
    100 KB a step on Mesa), so hardly any is discarded: kinds of steps that came thrice are recorded, and kept.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[Key, _Known] = {}
        self._steps = 0

    def run(self, programs: Sequence[Program], copies: Sequence[Copy] = ()) -> NDArray[np.uint8]:
        """As ``Runner.run``, to the bit."""
        return self.submit(programs, copies).wait()

    def submit(self, programs: Sequence[Program], copies: Sequence[Copy] = ()) -> Ticket:
        known = self._kind(programs, copies)
        recorded, known.ahead = known.ahead, None
        ticket = self._runner.submit(recorded or self._runner.encode(programs, copies))
        # Whatever ails the GPU shows when the ticket is waited for.
        with contextlib.suppress(PooledError):
            if self._is_worth(known):
                known.ahead = self._runner.encode(programs, copies)
        return ticket

    def forget(self) -> None:
        """Gives back what was recorded for nothing; before the memory it names is freed."""
        for known in self._known.values():
            self._discard(known)
        self._known.clear()

    def _kind(self, programs: Sequence[Program], copies: Sequence[Copy]) -> _Known:
        """Programs are told apart by identity: the kind keeps them alive."""
        key = tuple(map(id, programs)), tuple(copies)
        known = self._known.setdefault(key, _Known(tuple(programs)))
        self._steps += 1
        known.runs += 1
        known.last = self._steps
        return known

    def _is_worth(self, known: _Known) -> bool:
        if known.runs < WORTH_RECORDING:
            return False
        recorded = [other for other in self._known.values() if other.ahead is not None]
        if len(recorded) < MOST_KEPT:
            return True
        oldest = min(recorded, key=lambda other: other.last)
        if self._steps - oldest.last < FORGOTTEN_AFTER:
            return False
        self._discard(oldest)
        return True

    def _discard(self, known: _Known) -> None:
        if known.ahead is not None:
            self._runner.discard(known.ahead)
            known.ahead = None
