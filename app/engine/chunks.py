"""Chunks of columns under way: the GPU computes one while the one before is read back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.pace import Pace
from app.engine.program import Program
from app.engine.recorder import Recorder
from app.engine.runner import Copy, Runner, Ticket


@dataclass(frozen=True)
class Chunk:
    """``count`` columns whose submits are ``tickets``, the last with what is read back."""

    tickets: tuple[Ticket, ...]
    pieces: int
    width: int
    count: int
    started: float


class Chunks:
    """Starts chunks and waits for them in the same order. Not more than two need to be under way."""

    def __init__(self, runner: Runner, recorder: Recorder) -> None:
        self._runner = runner
        self._recorder = recorder
        self._pace = Pace()
        self._last_end = 0.0

    def start(
        self, programs: Sequence[Program], width: int, count: int, copies: Sequence[Copy], *, paced: bool
    ) -> Chunk:
        """Submits a chunk; ``paced`` in several submits where one would keep the GPU from others for too long."""
        started, tickets = time.perf_counter(), list[Ticket]()
        if not paced:
            return Chunk((self._recorder.submit(programs, copies),), 0, width, count, started)
        groups = self._pace.split(programs, width)
        for group in groups:
            last = len(tickets) == len(groups) - 1
            tickets.append(self._runner.submit(self._runner.encode(group, copies if last else ())))
        return Chunk(tuple(tickets), len(programs), width, count, started)

    def wait(self, chunk: Chunk) -> NDArray[np.uint8]:
        """What the chunk copied out. Its time begins when the one before it had ended."""
        *early, last = chunk.tickets
        for ticket in early:
            ticket.wait()
        data = last.wait()
        end = time.perf_counter()
        if chunk.pieces:
            self._pace.measured(chunk.pieces, chunk.width, end - max(chunk.started, self._last_end))
        self._last_end = end
        return data
