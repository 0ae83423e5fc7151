"""Continuous batching: what several answers ask of the engine while a pass runs goes together into the next one.

A step joins until its pass has the engine, so that nobody waits for a clock, and one answer alone for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from app.engine.types import STEP_COLUMNS, Step, Stepped

Pass = Callable[[Sequence[Step]], Awaitable[list[Stepped]]]


@dataclass(frozen=True, eq=False)
class _Asked:
    """One answer's step; ``stepped`` hears of it. Whoever asked may have gone."""

    step: Step
    stepped: asyncio.Future[Stepped]


class GatheredSteps:
    """``turn`` is held by whoever calls the engine, ``run`` calls it with the steps of one pass."""

    def __init__(self, turn: asyncio.Lock, run: Pass) -> None:
        self._turn = turn
        self._run = run
        self._waiting: list[_Asked] = []
        self._next: asyncio.Task[None] | None = None
        self._passes: set[asyncio.Task[None]] = set()

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        """Raises what the pass raised, to every answer in it."""
        loop = asyncio.get_running_loop()
        asked = [_Asked(step, loop.create_future()) for step in steps]
        self._waiting += asked
        self._begin()
        return [await each.stepped for each in asked]

    def _begin(self) -> None:
        """The pass that waits for its turn takes in whoever asks meanwhile."""
        if self._next is None and self._waiting:
            self._next = asyncio.get_running_loop().create_task(self._pass(), name="pass")
            self._passes.add(self._next)
            self._next.add_done_callback(self._passes.discard)

    async def _pass(self) -> None:
        """A task of its own: an answer that is given up takes no other one's step along."""
        async with self._turn:
            asked, self._next = self._take(), None
            self._begin()
            if asked:
                work = asyncio.ensure_future(self._run([each.step for each in asked]))
                await asyncio.wait([work])
                _tell(asked, work)

    def _take(self) -> list[_Asked]:
        """The oldest that fit a pass; a sequence can take one step at a time."""
        wanted = [each for each in self._waiting if not each.stepped.done()]
        taken: list[_Asked] = []
        for each in wanted:
            together = [each.step, *(other.step for other in taken)]
            if _fits(together) or not taken:
                taken.append(each)
            else:
                break
        self._waiting = wanted[len(taken) :]
        return taken


def _fits(steps: Sequence[Step]) -> bool:
    once = len({step.sequence for step in steps}) == len(steps)
    return once and sum(len(step.ids) for step in steps) <= STEP_COLUMNS


def _tell(asked: Sequence[_Asked], work: asyncio.Future[list[Stepped]]) -> None:
    error = asyncio.CancelledError() if work.cancelled() else work.exception()
    results = work.result() if error is None else []
    for i, each in enumerate(asked):
        if each.stepped.done():
            continue
        if error is None:
            each.stepped.set_result(results[i])
        elif work.cancelled():
            each.stepped.cancel()
        else:
            each.stepped.set_exception(error)
