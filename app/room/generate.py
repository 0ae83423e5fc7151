"""One answer: reads the prompt, then word after word until it ends (spec: rooms §14.2-14.4).

Drafts change how many words a step gives, never which: every word is chosen from the model's own scores at its
absolute position, the same way as without drafts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise

from app.core.clock import Clock
from app.engine.types import MAX_STOPS, STEP_COLUMNS, Candidates, ColumnClass, Floats, Sampling, Stepped
from app.room.chain import NOT_A_NUMBER, Chain, Shape
from app.room.checkpoints import Mark
from app.room.drafter import Drafter, Drafts, Source
from app.room.held import Held
from app.room.lanes import Lane
from app.room.laps import LapFailed
from app.room.segments import Fed, Segment, feed_plan, rounds
from app.room.steering import Free, Steering

ROUNDS_IN_FLIGHT = 6
AHEAD_SECONDS = 0.03
"""Words that come within it seem to come one by one, and whoever asks meanwhile does not feel the wait."""
MOST_AHEAD = 32

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
    """``ids`` is the prompt, answer so far included; ``most`` new tokens at most.

    ``marks`` are places in the prompt whose state is to be kept.
    """

    ids: tuple[int, ...]
    most: int
    sampling: Sampling
    context: int
    stop_ids: frozenset[int]
    marks: tuple[Mark, ...] = ()
    steering: Steering = field(default_factory=Free)


@dataclass
class Generation:
    """One attempt. ``held`` is what the lane of all caches holds, ``record`` which class positions had when computed.

    ``emit`` says a word and returns whether the answer ends with it. ``keep`` is called where the reading passes a
    mark, with nothing under way. ``columns`` says how many a step may have now.
    """

    chain: Chain
    request: Request
    held: Held
    record: Fed
    start: int
    choose: Choose
    emit: Callable[[int, Source], bool]
    clock: Clock
    drafter: Drafter
    keep: Callable[[Held, Mark], Awaitable[Held]]
    lane: Lane = field(default_factory=Lane)
    columns: Callable[[], int] = lambda: STEP_COLUMNS
    stopping: bool = False
    answer: list[int] = field(default_factory=list[int])
    prompt_seconds: float = 0.0
    seconds_a_word: float = 0.0

    async def run(self) -> Ending:
        """Raises LapFailed; ``held`` is exact in any case but that one."""
        began = self.clock.now()
        self.held = self.held.cut(self.start)
        await self._read_prompt()
        if self.stopping:
            return Ending.STOPPED
        last = self.request.ids[-1]
        step = await self._step([last], self.held.end, ())
        await self._grow([last], step.states, 1)
        token = self._chosen(step.candidates[0])
        self.prompt_seconds = self.clock.now() - began
        ending = self._say(token, Source.SAMPLED)
        while ending is None:
            count = self._ahead()
            token, ending = await (self._burst(token, count) if count > 1 else self._advance(token))
        await self.drafter.settle()
        return ending

    # -- the prompt -------------------------------------------------------------------------------------

    async def _read_prompt(self) -> None:
        """All but the last id, a few rounds in flight; a stop lets those in flight come home."""
        flying: deque[tuple[Segment, asyncio.Future[Floats]]] = deque()
        marks = {mark.position: mark for mark in self.request.marks}
        for part in self._parts(marks):
            if self.stopping:
                break
            if len(flying) == ROUNDS_IN_FLIGHT:
                await self._land(flying)
            ids = self.request.ids[part.start : part.end]
            flying.append((part, await self._send(ids, part)))
            self.held = self.held.grown(ids, part.kind, None)
            if part.end in marks:
                await self._land(flying, all_of=True)
                await self.drafter.settle()
                self.held = await self.keep(self.held, marks[part.end])
        await self._land(flying, all_of=True)

    async def _send(self, ids: Sequence[int], part: Segment) -> asyncio.Future[Floats]:
        lap = await self.chain.send(ids, part.start, part.kind, self.lane.sequence)
        self.lane.check()
        return lap

    def _parts(self, marks: dict[int, Mark]) -> list[Segment]:
        """The rounds of the prompt; none goes across a mark."""
        ends = sorted(marks)
        found: list[Segment] = []
        for segment in feed_plan(self.record, self.request.ids, self.start)[:-1]:
            borders = [segment.start, *(end for end in ends if segment.start < end < segment.end), segment.end]
            pieces = [Segment(a, b, segment.kind) for a, b in pairwise(borders)]
            found += rounds(pieces, self.chain.width(segment.kind))
        return found

    async def _land(self, flying: deque[tuple[Segment, asyncio.Future[Floats]]], *, all_of: bool = False) -> None:
        """Waits for the oldest round, or for all, and shows the draft block what came home."""
        while flying:
            part, lap = flying.popleft()
            states = await lap
            await self.drafter.learn(self.request.ids[part.start : part.end], states, part.start, part.kind)
            if part.end == self.held.end:
                self.held = self.held.known(states[-1:])
            if not all_of:
                return

    # -- the answer -------------------------------------------------------------------------------------

    async def _advance(self, token: int) -> tuple[int, Ending | None]:
        """Runs ``token``, which is shown and not yet in the caches, with guesses after it; the next one like it."""
        await self.drafter.prepare()
        began, position = self.clock.now(), self.held.end
        drafts = await self._guesses(token, position)
        columns = [token, *drafts.tokens]
        step = await self._step(columns, position, drafts.tokens)
        right, accepted, ending = 0, 0, None
        for candidates in step.candidates:
            right += 1
            token = self._chosen(candidates, position + right)
            agreed = right < len(columns) and token == columns[right]
            accepted += agreed
            ending = self._say(token, drafts.source if agreed else Source.SAMPLED)
            if ending is not None or not agreed:
                break
        await self._grow(columns, step.states, right)
        seconds = self.clock.now() - began
        self.seconds_a_word = seconds / right
        self.drafter.ended(drafts, accepted, seconds)
        return token, ending

    def _ahead(self) -> int:
        """How many words may be drawn on the GPU at a time. Only a dense model alone never has guesses."""
        alone = self.chain.alone and self.columns() == STEP_COLUMNS and len(self.request.stop_ids) <= MAX_STOPS
        likeliest = self.request.sampling.temperature <= 0 and self.request.steering.free and self.drafter.idle
        if not alone or not likeliest or self.seconds_a_word <= 0:
            return 1
        left = min(self.request.most - len(self.answer), self.request.context - 1 - self.held.end, MOST_AHEAD)
        return min(left, int(AHEAD_SECONDS / self.seconds_a_word))

    async def _burst(self, token: int, count: int) -> tuple[int, Ending | None]:
        """As ``_advance``, the likeliest ``count`` words at once."""
        began, position = self.clock.now(), self.held.end
        words = await self.chain.greedy(token, position, sorted(self.request.stop_ids), count, self.lane.sequence)
        self.lane.check()
        self.held = self.held.grown([token, *words[:-1]], ColumnClass.STEP, None)
        self.seconds_a_word = (self.clock.now() - began) / len(words)
        for said, token in enumerate(words, 1):
            ending = self._say(token, Source.SAMPLED)
            if ending is not None:
                self.held = self.held.cut(min(position + said, self.held.end))
                return token, ending
        return token, None

    async def _step(self, columns: Sequence[int], position: int, guesses: Sequence[int]) -> Stepped:
        """What caches gave that were lost meanwhile counts for nothing, though another deal's may have given it."""
        stepped = await self.chain.step(columns, position, self._shaping(guesses), self.lane.sequence)
        self.lane.check()
        return stepped

    async def _guesses(self, token: int, position: int) -> Drafts:
        """Only what may be said is worth verifying."""
        most = self._worth_drafting(position)
        drafts = await self.drafter.propose(token, position, most)
        if self.request.steering.free:
            return drafts
        return replace(drafts, tokens=self.request.steering.guesses(drafts.tokens)[:most])

    def _shaping(self, guesses: Sequence[int]) -> Shape | None:
        """Found while the trunk runs."""
        steering = self.request.steering
        if steering.free:
            return None
        return asyncio.get_running_loop().run_in_executor(None, steering.shaping, guesses)

    def _worth_drafting(self, position: int) -> int:
        """Guesses whose words could still be said, and which leave other answers their columns of a pass."""
        left = min(self.request.most - len(self.answer), self.request.context - 1 - position, self.columns())
        return max(0, left - 1)

    async def _grow(self, columns: list[int], states: Floats | None, right: int) -> None:
        """The first ``right`` of a step's columns stay."""
        position, kept = self.held.end, None if states is None else states[:right]
        self.held = self.held.grown(columns[:right], ColumnClass.STEP, kept, floor=self.chain.floor(position))
        self.chain.verified(len(columns), right)
        await self.drafter.learn(columns[:right], kept, position, ColumnClass.STEP)

    def _chosen(self, candidates: Candidates, position: int | None = None) -> int:
        if candidates.non_finite:
            raise LapFailed("The model's scores are no numbers.", NOT_A_NUMBER, repairable=False)
        return self.choose(candidates, self.request.sampling, self.held.end if position is None else position)

    def _say(self, token: int, source: Source) -> Ending | None:
        """Shows a token, unless it is the end; why the answer ends with it, if it does."""
        position = len(self.request.ids) + len(self.answer)
        if token in self.request.stop_ids:
            return Ending.FINISHED
        self.answer.append(token)
        self.drafter.said(token)
        self.request.steering.said(token)
        over = self.emit(token, source)
        if self.stopping:
            return Ending.STOPPED
        if over:
            return Ending.FINISHED
        if position >= self.request.context - 1:
            return Ending.FULL
        return Ending.CAPPED if len(self.answer) >= self.request.most else None
