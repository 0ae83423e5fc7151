"""One call at a time on this device's engine, whoever calls.

A re-deal loads while the last word of an answer may still be computed, and a start that was given up frees what
another is about to load; each waits here for the one before it to end, cancelled or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.engine.types import Candidates, ColumnClass, Floats
from app.room.ports import Compute, LoadRequest, Progress


class SerialCompute:
    """``ports.Compute`` around another."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._turn = asyncio.Lock()

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        async with self._turn:
            await self._compute.load(request, progress)

    async def unload(self) -> None:
        async with self._turn:
            await self._compute.unload()

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass) -> Floats:
        async with self._turn:
            return await self._compute.tokens(ids, position, kind)

    async def hidden(self, states: Floats, position: int, kind: ColumnClass) -> Floats:
        async with self._turn:
            return await self._compute.hidden(states, position, kind)

    async def candidates(self, states: Floats) -> list[Candidates]:
        async with self._turn:
            return await self._compute.candidates(states)

    async def decode(self, token: int, position: int) -> Candidates:
        async with self._turn:
            return await self._compute.decode(token, position)

    async def reset(self) -> None:
        async with self._turn:
            await self._compute.reset()
