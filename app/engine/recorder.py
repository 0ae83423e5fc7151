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

MOST_KEPT = 8
"""Steps of a trunk, a head and a draft block in a few widths."""


@dataclass(frozen=True)
class _Recorded:
    programs: tuple[Program, ...]
    copies: tuple[Copy, ...]
    encoded: Encoded

    def fits(self, programs: Sequence[Program], copies: Sequence[Copy]) -> bool:
        same = len(programs) == len(self.programs) and all(a is b for a, b in zip(programs, self.programs, strict=True))
        return same and tuple(copies) == self.copies


class Recorder:
    """Submits steps, and while the GPU runs one records it once more: the next is mostly like it."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._kept: list[_Recorded] = []

    def run(self, programs: Sequence[Program], copies: Sequence[Copy] = ()) -> NDArray[np.uint8]:
        """As ``Runner.run``, to the bit."""
        return self.submit(programs, copies).wait()

    def submit(self, programs: Sequence[Program], copies: Sequence[Copy] = ()) -> Ticket:
        ticket = self._runner.submit(self._taken(programs, copies) or self._runner.encode(programs, copies))
        # Whatever ails the GPU shows when the ticket is waited for.
        with contextlib.suppress(PooledError):
            self._record(programs, copies)
        return ticket

    def forget(self) -> None:
        """Gives back what was recorded for nothing; before the memory it names is freed."""
        for kept in self._kept:
            self._runner.discard(kept.encoded)
        self._kept.clear()

    def _taken(self, programs: Sequence[Program], copies: Sequence[Copy]) -> Encoded | None:
        at = next((i for i, kept in enumerate(self._kept) if kept.fits(programs, copies)), None)
        return None if at is None else self._kept.pop(at).encoded

    def _record(self, programs: Sequence[Program], copies: Sequence[Copy]) -> None:
        encoded = self._runner.encode(programs, copies)
        self._kept.append(_Recorded(tuple(programs), tuple(copies), encoded))
        if len(self._kept) > MOST_KEPT:
            self._runner.discard(self._kept.pop(0).encoded)
