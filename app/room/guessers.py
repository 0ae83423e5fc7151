"""Who guesses what a lookup does not find: a draft block or a draft model (spec: rooms §14.4-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from app.engine.types import STEP_COLUMNS, ColumnClass, Floats
from app.room.ports import Compute

READ_AT_ONCE = 512
"""Tokens a draft model reads in one call, so that whoever else waits for this device's engine gets its turn."""


class Guesser(Protocol):
    """Errors are PooledError."""

    async def learn(self, ids: Sequence[int], states: Floats, position: int, kind: ColumnClass) -> None:
        """Columns the trunk has computed, and [n, hidden] its states after them."""
        ...

    async def prepare(self) -> None:
        """Whatever must be done once before many guesses."""
        ...

    async def guesses(self, token: int, position: int, count: int) -> list[int]:
        """At most ``count`` of what follows ``token``, which stands at ``position``; none: there will be no more."""
        ...

    async def settle(self) -> None:
        """Nothing may be left to be learned: an answer ends."""
        ...


class BlockGuesser:
    """The model's draft block, shown every column with its true state: a prompt's at once, an answer's when needed."""

    def __init__(self, compute: Compute, start: int, before: Floats | None, sequence: int = 0) -> None:
        self._compute = compute
        self._sequence = sequence
        self._before = before
        self._shown = start
        self._late_ids: list[int] = []
        self._late_states: list[Floats] = []

    async def learn(self, ids: Sequence[int], states: Floats, position: int, kind: ColumnClass) -> None:
        """What the block has seen truly is left out."""
        if kind is ColumnClass.PROMPT:
            await self.settle()
        first = np.zeros_like(states[0]) if self._before is None else self._before
        before = np.concatenate([first[None], states[:-1]])
        new = min(max(self._shown - position, 0), len(ids))
        self._before, self._shown = states[-1], position + len(ids)
        if kind is ColumnClass.PROMPT and new < len(ids):
            await self._compute.learn(ids[new:], before[new:], position + new, kind, self._sequence)
            return
        self._late_ids.extend(ids[new:])
        self._late_states.extend(before[new:])
        if len(self._late_ids) >= STEP_COLUMNS:
            await self.settle()

    async def prepare(self) -> None:
        """It has seen the prompt already."""

    async def guesses(self, token: int, position: int, count: int) -> list[int]:
        """None while the state before ``token`` is not known."""
        if self._before is None:
            return []
        await self.settle()
        found = await self._compute.draft(token, self._before, position, count, self._sequence)
        self._shown = position + 1
        return found

    async def settle(self) -> None:
        ids, states = self._late_ids, self._late_states
        self._late_ids, self._late_states = [], []
        if ids:
            at = self._shown - len(ids)
            await self._compute.learn(ids, np.stack(states), at, ColumnClass.STEP, self._sequence)


class ModelGuesser:
    """A small model of the same tokens, which reads the conversation itself. ``ids`` grows with the answer."""

    def __init__(self, compute: Compute, ids: list[int], sequence: int = 0) -> None:
        self._compute = compute
        self._sequence = sequence
        self._ids = ids
        self._read = 0

    async def learn(self, ids: Sequence[int], states: Floats, position: int, kind: ColumnClass) -> None:
        """It has states of its own."""

    async def prepare(self) -> None:
        """Reads what is more than a step's columns."""
        while len(self._ids) - self._read > STEP_COLUMNS:
            self._read = min(self._read + READ_AT_ONCE, len(self._ids))
            await self._compute.guesses(self._ids[: self._read], 0, self._sequence)

    async def guesses(self, token: int, position: int, count: int) -> list[int]:
        self._read = len(self._ids)
        return await self._compute.guesses(self._ids, count, self._sequence)

    async def settle(self) -> None:
        """Nothing waits."""
