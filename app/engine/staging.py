"""What goes into the workspace before a pass, and what comes out of it after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError, ModelError, PromptError
from app.engine.arch import ModelConfig
from app.engine.memory import Slice
from app.engine.ops.mask import words_of
from app.engine.ops.select import (
    HEADER_WORDS,
    ROOM,
    SPACE_WORDS,
    Best,
    read_best,
    read_candidates,
)
from app.engine.runner import Copy, Runner, Ticket
from app.engine.types import MAX_STOPS, Candidates, Floats
from app.engine.workspace import Run, Workspace, record_array

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]


class Staging:
    """Inputs and results of one engine's passes; ``adapter`` is named where a GPU's numbers are none."""

    def __init__(self, config: ModelConfig, space: Workspace, runner: Runner, adapter: str) -> None:
        self._config = config
        self._space = space
        self._runner = runner
        self._adapter = adapter

    # -- before a pass ------------------------------------------------------------------------

    def records(self, runs: Sequence[Run], width: int) -> None:
        self._runner.write(self._space.records, record_array(runs, width, self._space.context))

    def states(self, states: Floats) -> None:
        """[n, hidden] into the residual stream."""
        self._put(self._space.hidden.slice, states)

    def before(self, states: Floats) -> None:
        """[n, hidden] trunk states for the draft block."""
        assert self._space.draft
        self._put(self._space.draft.before.slice, states)

    def masks(self, masks: Words, count: int) -> None:
        """[count, words]; PromptError for another shape."""
        assert self._space.masks
        shape = count, words_of(self._config.vocab)
        if masks.shape != shape:
            raise PromptError(f"A mask of shape {masks.shape} does not fit {shape[0]} columns of {shape[1]} words.")
        self._runner.write(self._space.masks, np.ascontiguousarray(masks, np.uint32))

    def stops(self, stops: Sequence[int]) -> None:
        """Ids that end a greedy answer."""
        assert self._space.selection
        if len(stops) > MAX_STOPS:
            raise PromptError(f"At most {MAX_STOPS} stop ids are possible, not {len(stops)}.")
        words = np.zeros(MAX_STOPS + 1, np.uint32)
        words[: len(stops) + 1] = [len(stops), *stops]
        self._runner.write(self._space.selection.stops, words)

    def checked(self, states: Floats) -> Floats:
        """ModelError unless they are [n, hidden]."""
        if states.ndim != 2 or states.shape[1] != self._config.hidden:
            raise ModelError(f"States of shape {states.shape} do not fit a hidden size of {self._config.hidden}.")
        return np.ascontiguousarray(states, np.float32)

    def _put(self, target: Slice, states: Floats) -> None:
        missing = self._space.hidden.stride - states.shape[1]
        self._runner.write(target, np.pad(states, ((0, 0), (0, missing))) if missing else states)

    # -- what is copied out -------------------------------------------------------------------

    def best_copy(self, count: int) -> Copy:
        """The 64 best of each of ``count`` columns."""
        assert self._space.selection
        return self._space.selection.result, count * SPACE_WORDS * 4

    def header_copy(self) -> Copy:
        """One column's best id alone."""
        assert self._space.selection
        return self._space.selection.result, HEADER_WORDS * 4

    def state_copy(self, count: int) -> Copy:
        return self._space.hidden.slice, count * self._space.hidden.stride * 4

    def logit_copy(self, count: int) -> Copy:
        assert self._space.logits
        return self._space.logits.slice, count * self._space.logits.stride * 4

    # -- after a pass -------------------------------------------------------------------------

    def results(self, data: Bytes, count: int) -> tuple[list[Candidates], Bytes]:
        """The best of each column, and the bytes that were copied behind them."""
        split = count * SPACE_WORDS * 4
        blocks = data[:split].view(np.uint32).reshape(count, SPACE_WORDS)
        return [self._candidates(block, column) for column, block in enumerate(blocks)], data[split:]

    def hidden(self, data: Bytes) -> Floats:
        """[n, hidden] of a ``state_copy``."""
        return data.view(np.float32).reshape(-1, self._space.hidden.stride)[:, : self._config.hidden]

    def logits(self, data: Bytes) -> Floats:
        """[n, vocab] of a ``logit_copy``."""
        assert self._space.logits
        return data.view(np.float32).reshape(-1, self._space.logits.stride)[:, : self._config.vocab].copy()

    def best(self, ticket: Ticket) -> Best:
        """Of a ``header_copy``; GpuError where logits are not finite."""
        best = read_best(ticket.wait().view(np.uint32))
        if best.non_finite:
            raise GpuError(
                f"{self._adapter} computed {best.non_finite} numbers that are not finite.",
                "Start the model again; if it repeats, update the driver.",
            )
        return best

    def _candidates(self, block: Words, column: int) -> Candidates:
        """With many ids of one value the row itself is read."""
        if read_best(block).count <= ROOM:
            return read_candidates(block)
        rows = self._runner.run([], [self.logit_copy(column + 1)])
        return read_candidates(block, self.logits(rows)[column])
