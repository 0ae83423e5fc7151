"""Writes answers on the chain as it is dealt, through losses and returns (spec: rooms §14, §16)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from app.core.clock import Clock
from app.core.errors import DeviceLost, PooledError, PromptError
from app.engine.types import STEP_COLUMNS
from app.room.answering import Answering, Draft, Running, Written
from app.room.chain import Chain
from app.room.checkpoints import WORTH_SAVING, Keep, Mark
from app.room.dealing import Dealing, Stage
from app.room.drafter import Source
from app.room.events import Event, PromptRead
from app.room.generate import Choose, Ending, Generation, Request
from app.room.held import Held
from app.room.lanes import Lane, Lanes
from app.room.laps import LapFailed
from app.room.saves import Saves
from app.room.segments import Fed
from app.room.waiters import Waiters

MOST_TRIES = 6
"""Without a new word."""
LONGEST_RECOVERY = 360.0


class Writer:
    """As many answers at a time as the chain keeps conversations apart; each has a lane while it is written."""

    def __init__(
        self, dealing: Dealing, saves: Saves, choose: Choose, clock: Clock, happened: Callable[[Answering, Event], None]
    ) -> None:
        self._dealing = dealing
        self._saves = saves
        self._choose = choose
        self._clock = clock
        self._happened = happened
        self._lanes = Lanes(0)
        self._attempts: list[Lanes] = []
        self._waiters = Waiters(self._may_go_on, clock)
        self._whole_at = 0.0

    @property
    def most(self) -> int:
        """How many answers are written at a time."""
        return max(1, len(self._lanes))

    @property
    def held(self) -> Held:
        """What the caches hold of the conversation that was answered last."""
        return self._lanes.latest

    async def write(self, work: Written) -> Ending:
        """Tries again after a loss, from the last word said; nothing is said twice. Raises PooledError.

        What a recurrent model's caches hold is saved before an answer counts as over: what is asked next must find the
        devices free.
        """
        said = tries = 0
        while not work.now.stopping:
            lanes = self._lanes
            try:
                await self._waiters.wait(work.now)
                lanes = self._lanes
                return await self._attempt(work, lanes)
            except (LapFailed, DeviceLost) as error:
                tries = 1 if len(work.now.ids) > said else tries + 1
                said = len(work.now.ids)
                if not work.now.stopping:
                    self._repair(error, tries, lanes)
        return Ending.STOPPED

    def _may_go_on(self) -> bool:
        """Nothing begins on new caches while an attempt on lost ones may still have a call under way."""
        clean = all(lanes is self._lanes for lanes in self._attempts)
        return self._dealing.stage is Stage.ONLINE and clean and len(self._attempts) < len(self._lanes)

    def _repair(self, error: LapFailed | DeviceLost, tries: int, lanes: Lanes) -> None:
        """Raises the error where another try is of no use: it is no loss, or tries have brought no word for long.

        The first answer that meets a lost device has its share loaded again for all.
        """
        if tries >= MOST_TRIES or (isinstance(error, LapFailed) and not error.repairable):
            raise error
        if isinstance(error, DeviceLost) and not lanes.lost:
            self._dealing.rebuild(str(error))

    def stop(self, work: Written) -> None:
        """Ends after the word in flight; a held or waiting answer is given up at once."""
        work.now.stopping = True
        if work.now.generation is not None:
            work.now.generation.stopping = True
        chain, error = self._dealing.chain, LapFailed("Stopped.", repairable=False)
        if chain is not None and chain.laps.held:
            chain.laps.fail_all(error)
        self._waiters.fail(error, lambda now, _since: now is work.now)

    # -- one attempt --------------------------------------------------------------------------------------------

    async def _attempt(self, work: Written, lanes: Lanes) -> Ending:
        self._attempts.append(lanes)
        try:
            return await self._write_in(work, lanes)
        finally:
            self._attempts.remove(lanes)
            self._waiters.wake()

    async def _write_in(self, work: Written, lanes: Lanes) -> Ending:
        running = self._running()
        chain = running.chain
        task = await work.draft(running)
        if task.most <= 0:
            return Ending.CAPPED
        lane = lanes.take(task.ids, hybrid=chain.hybrid, saved=self._saves.reach(chain, task.ids))
        try:
            held, start = await self._saves.resume(chain, lane, task.ids, task.shared)
            lane.held, lane.shared = Held(), task.shared
            ending = await self._run(work, self._generation(work, running, task, lane, held, start), lane)
            if chain.hybrid:
                with contextlib.suppress(LapFailed):  # what was said stays said, whatever is lost after it
                    lane.held = await self._saves.keep(chain, lane, lane.held, Keep.ANSWER)
            return ending
        finally:
            lane.busy = False

    def _marks(self, chain: Chain, task: Draft, start: int) -> tuple[Mark, ...]:
        if not chain.hybrid or len(task.ids) - start <= WORTH_SAVING:
            return ()
        return self._saves.marks(chain, task.marks(), task.ids, start)

    def _generation(
        self, work: Written, running: Running, task: Draft, lane: Lane, held: Held, start: int
    ) -> Generation:
        chain = running.chain
        return Generation(
            chain=chain,
            lane=lane,
            request=self._request(running, task, start),
            held=held,
            record=work.now.record,
            start=start,
            choose=self._choose,
            emit=lambda token, source: self._emit(work, token, source),
            clock=self._clock,
            drafter=chain.drafter(task.ids, start, held.before(start), lane.sequence),
            keep=lambda held, mark: self._saves.keep(chain, lane, held, mark.keep),
            columns=lambda: STEP_COLUMNS // max(1, len(self._attempts)),
            stopping=work.now.stopping,
        )

    def _request(self, running: Running, task: Draft, start: int) -> Request:
        return Request(
            ids=task.ids,
            most=task.most,
            sampling=task.sampling,
            context=running.context,
            stop_ids=running.language.tokenizer.stop_ids,
            marks=self._marks(running.chain, task, start),
            steering=task.steering,
        )

    def _emit(self, work: Written, token: int, source: Source) -> bool:
        work.now.ids.append(token)
        work.now.pace.word(self._clock.now())
        return work.say(token, source)

    async def _run(self, work: Written, generation: Generation, lane: Lane) -> Ending:
        """The caches are exact after a success; after a failure only the classes are remembered."""
        now = work.now
        now.generation = generation
        try:
            ending = await generation.run()
        except PooledError as error:
            now.record = _longer(now.record, generation.held.fed)
            if not isinstance(error, PromptError | DeviceLost):
                await self._distrust(generation.chain, lane)
            raise
        finally:
            now.drafts = now.acceptance
            now.generation = None
        lane.held, now.record = generation.held, generation.held.fed
        now.reused = max(now.reused, generation.start)
        now.prompt_seconds += generation.prompt_seconds
        read = len(generation.request.ids) - generation.start
        self._happened(now, PromptRead(generation.start, read, generation.prompt_seconds))
        return ending

    async def _distrust(self, chain: Chain, lane: Lane) -> None:
        """Saved states stay good when a device is gone or a form was left; after other failures nobody can know."""
        if chain.whole and self._dealing.chain is chain:
            await self._saves.distrust(chain, lane)

    def _running(self) -> Running:
        dealing = self._dealing
        if dealing.chain is None or dealing.language is None or dealing.planned is None:
            raise LapFailed("No model runs in this room.", repairable=False)
        return Running(dealing.chain, dealing.language, dealing.planned.context.positions)

    # -- losses and returns -------------------------------------------------------------------------------------

    def online(self) -> None:
        """Every cache starts empty after a deal or a return."""
        chain = self._dealing.chain
        self._lanes.lose(LapFailed("The layers are dealt again."))
        self._lanes = Lanes(chain.sequences if chain is not None else 0)
        if chain is not None:
            self._saves.online(chain)
        self._waiters.wake()

    def lost(self, error: LapFailed) -> None:
        self._lanes.lose(error)
        if not error.repairable:
            self._waiters.fail(error)

    def ended(self, why: str) -> None:
        """The model does not run any more."""
        error = LapFailed(why, repairable=False)
        self._lanes.lose(error)
        self._waiters.fail(error)

    def tick(self) -> None:
        """Who waits for others to be written may wait long, who waits for the room to be whole may not."""
        now = self._clock.now()
        if self._dealing.stage is Stage.ONLINE:
            self._whole_at = now
        error = LapFailed("The room did not become whole again.", "Ask again.", repairable=False)
        self._waiters.fail(error, lambda _now, since: now - max(since, self._whole_at) > LONGEST_RECOVERY)


def _longer(record: Fed, computed: Fed) -> Fed:
    """The record keeps classes past a failed attempt's end when that attempt was repeating it."""
    return record if record.common(computed.ids) == len(computed.ids) else computed
