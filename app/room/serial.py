"""One call at a time on this device's engine, whoever calls; steps of several answers are one.

A re-deal loads while the last word of an answer may still be computed, and a start that was given up frees what
another is about to load; each waits here for the one before it to end, cancelled or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.engine.types import Candidates, ColumnClass, Floats, Shaping, Step, Stepped
from app.room.gathered import GatheredSteps
from app.room.ports import Compute, LoadRequest, Progress, State


class SerialCompute:
    """``ports.Compute`` around another."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._turn = asyncio.Lock()
        self._steps = GatheredSteps(self._turn, lambda steps: self._compute.step(steps))

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        async with self._turn:
            await self._compute.load(request, progress)

    async def unload(self) -> None:
        async with self._turn:
            await self._compute.unload()

    @property
    def sequences(self) -> int:
        return self._compute.sequences

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        async with self._turn:
            return await self._compute.tokens(ids, position, kind, sequence)

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        async with self._turn:
            return await self._compute.hidden(states, position, kind, sequence)

    async def candidates(self, states: Floats, shaping: Shaping | None = None) -> list[Candidates]:
        async with self._turn:
            return await self._compute.candidates(states, shaping)

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        return await self._steps.step(steps)

    async def greedy(self, token: int, position: int, stops: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        async with self._turn:
            return await self._compute.greedy(token, position, stops, count, sequence)

    @property
    def drafts(self) -> bool:
        return self._compute.drafts

    @property
    def draft_model(self) -> bool:
        return self._compute.draft_model

    @property
    def prompt_chunk(self) -> int:
        return self._compute.prompt_chunk

    @property
    def signature(self) -> str:
        return self._compute.signature

    async def learn(
        self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0
    ) -> None:
        async with self._turn:
            await self._compute.learn(ids, before, position, kind, sequence)

    async def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        async with self._turn:
            return await self._compute.draft(token, before, position, count, sequence)

    async def guesses(self, ids: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        async with self._turn:
            return await self._compute.guesses(ids, count, sequence)

    async def save(self, name: str, end: int, sequence: int = 0) -> None:
        async with self._turn:
            await self._compute.save(name, end, sequence)

    async def restore(self, name: str, sequence: int = 0) -> int:
        async with self._turn:
            return await self._compute.restore(name, sequence)

    async def drop(self, name: str) -> None:
        async with self._turn:
            await self._compute.drop(name)

    async def saved(self) -> list[str]:
        async with self._turn:
            return await self._compute.saved()

    async def export(self, sequence: int = 0) -> State:
        async with self._turn:
            return await self._compute.export(sequence)

    async def adopt(self, name: str, state: State, sequence: int = 0) -> None:
        async with self._turn:
            await self._compute.adopt(name, state, sequence)
