"""Writes one answer at a time on the chain as it is dealt, through losses and returns (spec: rooms §14, §16)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.core.clock import Clock
from app.core.errors import DeviceLost, PooledError, PromptError
from app.room.answering import Draft, Running, Written
from app.room.chain import Chain
from app.room.checkpoints import WORTH_SAVING, Keep, Mark
from app.room.dealing import Dealing, Stage
from app.room.drafter import Source
from app.room.events import Event, PromptRead
from app.room.generate import Choose, Ending, Generation, Request
from app.room.held import Held
from app.room.laps import LapFailed
from app.room.pace import Pace
from app.room.saves import Saves
from app.room.segments import Fed

MOST_TRIES = 6
"""Without a new word."""
LONGEST_RECOVERY = 360.0


class Writer:
    """``held`` is what the caches of all devices hold, ``pace`` how fast the last answer's words came."""

    def __init__(
        self, dealing: Dealing, saves: Saves, choose: Choose, clock: Clock, happened: Callable[[Event], None]
    ) -> None:
        self.held = Held()
        self.pace = Pace()
        self._dealing = dealing
        self._saves = saves
        self._choose = choose
        self._clock = clock
        self._happened = happened
        self._waiter: asyncio.Future[None] | None = None
        self._waiting_since = 0.0

    async def write(self, work: Written) -> Ending:
        """Tries again after a loss, from the last word said; nothing is said twice. Raises PooledError."""
        self.pace = Pace()
        said = tries = 0
        while not work.now.stopping:
            try:
                await self._wait_whole()
                return await self._attempt(work)
            except (LapFailed, DeviceLost) as error:
                tries = 1 if len(work.now.ids) > said else tries + 1
                said = len(work.now.ids)
                if not work.now.stopping:
                    self._repair(error, tries)
        return Ending.STOPPED

    def _repair(self, error: LapFailed | DeviceLost, tries: int) -> None:
        """Raises the error where another try is of no use: it is no loss, or tries have brought no word for long."""
        if tries >= MOST_TRIES or (isinstance(error, LapFailed) and not error.repairable):
            raise error
        if isinstance(error, DeviceLost):
            self._dealing.rebuild(str(error))

    def stop(self, work: Written) -> None:
        """Ends after the word in flight; a held or waiting answer is given up at once."""
        work.now.stopping = True
        if work.now.generation is not None:
            work.now.generation.stopping = True
        chain, error = self._dealing.chain, LapFailed("Stopped.", repairable=False)
        if chain is not None and chain.laps.held:
            chain.laps.fail_all(error)
        self._wake(error)

    async def save(self) -> None:
        """Before an answer counts as over: what is asked next must find the devices free."""
        if self._dealing.chain is None:
            return
        before = self.held
        kept = await self._saves.keep(self._dealing.chain, before, Keep.ANSWER)
        if self.held is before:  # nothing was lost meanwhile
            self.held = kept

    # -- one attempt --------------------------------------------------------------------------------------------

    async def _attempt(self, work: Written) -> Ending:
        running = self._running()
        task = await work.draft(running)
        if task.most <= 0:
            return Ending.CAPPED
        held, start = await self._saves.resume(running.chain, self.held, task.ids)
        request = Request(
            ids=task.ids,
            most=task.most,
            sampling=task.sampling,
            context=running.context,
            stop_ids=running.language.tokenizer.stop_ids,
            marks=self._marks(running.chain, task, start),
            steering=task.steering,
        )
        return await self._run(work, self._generation(work, running.chain, request, held, start))

    def _marks(self, chain: Chain, task: Draft, start: int) -> tuple[Mark, ...]:
        if not chain.hybrid or len(task.ids) - start <= WORTH_SAVING:
            return ()
        return self._saves.marks(chain, task.marks(), task.ids, start)

    def _generation(self, work: Written, chain: Chain, request: Request, held: Held, start: int) -> Generation:
        return Generation(
            chain=chain,
            request=request,
            held=held,
            record=work.now.record,
            start=start,
            choose=self._choose,
            emit=lambda token, source: self._emit(work, token, source),
            clock=self._clock,
            drafter=chain.drafter(request.ids, start, held.before(start)),
            keep=lambda held, mark: self._saves.keep(chain, held, mark.keep),
            stopping=work.now.stopping,
        )

    def _emit(self, work: Written, token: int, source: Source) -> bool:
        work.now.ids.append(token)
        self.pace.word(self._clock.now())
        return work.say(token, source)

    async def _run(self, work: Written, generation: Generation) -> Ending:
        """The caches are exact after a success; after a failure only the classes are remembered."""
        now = work.now
        now.generation = generation
        try:
            ending = await generation.run()
        except PooledError as error:
            self.held = Held()
            now.record = _longer(now.record, generation.held.fed)
            if not isinstance(error, PromptError):
                await self._distrust(generation.chain)
            raise
        finally:
            now.drafts = now.acceptance
            now.generation = None
        self.held, now.record = generation.held, generation.held.fed
        now.reused = max(now.reused, generation.start)
        now.prompt_seconds += generation.prompt_seconds
        read = len(generation.request.ids) - generation.start
        self._happened(PromptRead(generation.start, read, generation.prompt_seconds))
        return ending

    async def _distrust(self, chain: Chain) -> None:
        """Saved states stay good when a device is gone or a form was left; after other failures nobody can know."""
        if chain.whole and self._dealing.chain is chain:
            await self._saves.clear(chain)

    def _running(self) -> Running:
        dealing = self._dealing
        if dealing.chain is None or dealing.language is None or dealing.planned is None:
            raise LapFailed("No model runs in this room.", repairable=False)
        return Running(dealing.chain, dealing.language, dealing.planned.context.positions)

    # -- losses and returns -------------------------------------------------------------------------------------

    async def _wait_whole(self) -> None:
        if self._dealing.stage is Stage.ONLINE:
            return
        self._waiting_since = self._clock.now()
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self, error: LapFailed | None = None) -> None:
        if self._waiter is None or self._waiter.done():
            return
        if error is None:
            self._waiter.set_result(None)
        else:
            self._waiter.set_exception(error)

    def online(self) -> None:
        """Every cache starts empty after a deal or a return."""
        self.held = Held()
        if self._dealing.chain is not None:
            self._saves.online(self._dealing.chain)
        self._wake()

    def lost(self, error: LapFailed) -> None:
        self.held = Held()
        if not error.repairable:
            self._wake(error)

    def ended(self, why: str) -> None:
        """The model does not run any more."""
        error = LapFailed(why, repairable=False)
        self.held = Held()
        if self._dealing.chain is not None:
            self._dealing.chain.laps.fail_all(error)
        self._wake(error)

    def tick(self) -> None:
        if self._waiter is not None and self._clock.now() - self._waiting_since > LONGEST_RECOVERY:
            self._wake(LapFailed("The room did not become whole again.", "Ask again.", repairable=False))


def _longer(record: Fed, computed: Fed) -> Fed:
    """The record keeps classes past a failed attempt's end when that attempt was repeating it."""
    return record if record.common(computed.ids) == len(computed.ids) else computed
