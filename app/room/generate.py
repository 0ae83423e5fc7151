"""One answer: reads the prompt, then word after word until it ends (spec: rooms §14.2, §14.3)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from app.core.clock import Clock
from app.engine.types import Candidates, ColumnClass, Floats, Sampling
from app.room.chain import NOT_A_NUMBER, Chain
from app.room.laps import LapFailed
from app.room.segments import Fed, feed_plan, rounds

ROUNDS_IN_FLIGHT = 6

Choose = Callable[[Candidates, Sampling, int], int]
"""Picks the token of an absolute position."""


class Ending(Enum):
    """Why an answer ended; the value is said in its statistics line."""

    FINISHED = ""
    STOPPED = "stopped"
    CAPPED = "at its length limit"
    FULL = "context full"


@dataclass(frozen=True)
class Request:
    """``ids`` is the prompt, answer so far included; ``most`` new tokens at most."""

    ids: tuple[int, ...]
    most: int
    sampling: Sampling
    context: int
    stop_ids: frozenset[int]


@dataclass
class Generation:
    """One attempt. ``cached`` is what all caches hold, ``record`` which class positions had when computed."""

    chain: Chain
    request: Request
    cached: Fed
    record: Fed
    start: int
    choose: Choose
    emit: Callable[[int], None]
    clock: Clock
    stopping: bool = False
    answer: list[int] = field(default_factory=list[int])
    prompt_seconds: float = 0.0

    async def run(self) -> Ending:
        """Raises LapFailed; ``cached`` is exact in any case but that one."""
        began = self.clock.now()
        if self.start == 0:
            await self.chain.reset()
        self.cached = self.cached.cut(self.start)
        await self._read_prompt()
        if self.stopping:
            return Ending.STOPPED
        candidates = await self._step(self.request.ids[-1])
        self.prompt_seconds = self.clock.now() - began
        return await self._write(candidates)

    async def _read_prompt(self) -> None:
        """All but the last id, a few rounds in flight; a stop lets those in flight come home."""
        flying: deque[asyncio.Future[Floats]] = deque()
        ids = self.request.ids
        for segment in feed_plan(self.record, ids, self.start)[:-1]:
            for part in rounds([segment], self.chain.width(segment.kind)):
                if self.stopping:
                    break
                if len(flying) == ROUNDS_IN_FLIGHT:
                    await flying.popleft()
                flying.append(await self.chain.send(ids[part.start : part.end], part.start, part.kind))
                self.cached = self.cached.grown(ids[part.start : part.end], part.kind)
        while flying:
            await flying.popleft()

    async def _step(self, token: int) -> Candidates:
        candidates = await self.chain.step(token, len(self.cached.ids))
        self.cached = self.cached.grown([token], ColumnClass.STEP)
        if candidates.non_finite:
            raise LapFailed("The model's scores are no numbers.", NOT_A_NUMBER, repairable=False)
        return candidates

    async def _write(self, candidates: Candidates) -> Ending:
        while True:
            position = len(self.cached.ids)
            token = self.choose(candidates, self.request.sampling, position)
            if token in self.request.stop_ids:
                return Ending.FINISHED
            self.answer.append(token)
            self.emit(token)
            ending = self._limit(position)
            if ending is not None:
                return ending
            candidates = await self._step(token)

    def _limit(self, position: int) -> Ending | None:
        if self.stopping:
            return Ending.STOPPED
        if position >= self.request.context - 1:
            return Ending.FULL
        return Ending.CAPPED if len(self.answer) >= self.request.most else None
