"""The model host's checkpoints at work: on its own GPU at once, on the chain with the next frame, on disk after."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from app.core.errors import OutOfMemory, PooledError
from app.engine.checkpoints import hash_ids
from app.room.chain import Chain
from app.room.checkpoints import WORTH_SAVING, Checkpoint, Checkpoints, Keep, Mark, live_start
from app.room.copies import Copies, start_copy
from app.room.copy_note import pack_note, read_note
from app.room.held import Held
from app.room.lanes import Lane
from app.room.pending import PendingControl
from app.room.ports import Compute, State
from app.room.tasks import Tasks

log = logging.getLogger(__name__)


class Saves:
    """Where answers share the engine, one of them saves, restores or forgets at a time.

    Dense models go on from any position, so only what another conversation takes the place of is saved; where their
    layers are split, nothing is. The calls are the same for all.
    """

    def __init__(self, compute: Compute, copies: Copies) -> None:
        self._compute = compute
        self._copies = copies
        self._known = Checkpoints(0)
        self._turn = asyncio.Lock()
        self._tasks = Tasks()

    # -- a deal -----------------------------------------------------------------------------------------

    async def reload(self, answers: int) -> None:
        """After this device's share was loaded: nothing is kept but what lies on its disk."""
        async with self._turn:
            lanes = self._compute.sequences
            self._known = Checkpoints(answers, lanes)
            await self._drop_own()
            signature = self._compute.signature
            names = (await self._copies.names(signature))[: answers + 1 + lanes] if answers else []
            for name in reversed(names):
                await self._read_back(signature, name)

    async def _read_back(self, signature: str, name: str) -> None:
        copy = await self._copies.read(signature, name)
        noted = read_note(copy.note) if copy is not None else None
        if copy is None or noted is None or not name.isdecimal():
            return
        held, keep = noted
        if held.end != copy.end or hash_ids(held.fed.ids) != copy.ids_hash:
            return
        try:
            await self._compute.adopt(name, State(copy.end, copy.data))
        except PooledError as error:
            log.warning("a saved conversation cannot be used again: %s", error)
            return
        await self._drop_slots(self._known.add(Checkpoint(int(name), held, keep)))

    def online(self, chain: Chain) -> None:
        """The chain is whole: what a device lacks is forgotten, and it forgets what nobody else has."""
        complete = {kept.slot for kept in self._known.kept if _everywhere(chain, kept.slot)}
        self._known.forget([kept.slot for kept in self._known.kept if kept.slot not in complete])
        extra = sorted(set[int]().union(*(hop.slots for hop in chain.hops)) - complete)
        self._known.taken([*complete, *extra])
        chain.pending = PendingControl(unheard=chain.alone)
        if extra and not complete:
            chain.pending.drop_all()
        else:
            chain.pending.drop(extra)

    # -- an answer --------------------------------------------------------------------------------------

    def reach(self, chain: Chain, ids: Sequence[int]) -> int:
        """How much of ``ids`` a saved state has."""
        return self._known.reach(ids, hybrid=chain.hybrid) if self._on(chain) else 0

    async def resume(self, chain: Chain, lane: Lane, ids: Sequence[int], shared: int | None = 0) -> tuple[Held, int]:
        """What a lane's caches hold once the longest usable beginning of ``ids`` is in them, and its length.

        ``shared`` as ``Draft.shared``: what is held of another conversation is saved first.
        """
        async with self._turn:
            lane.check()
            held, start = lane.held, live_start(lane.held, ids, hybrid=chain.hybrid)
            if not self._on(chain):
                return held, start
            await self._prune()
            if lane.another(ids, shared):
                await self._park(chain, lane, ids, start)
            lane.states.clear()
            while (best := await self._best(chain, ids, start)) is not None:
                if await self._restored(lane, best) == best.held.end:
                    lane.states.add(best.slot)
                    return await self._went_back(chain, best, ids)
                await self._forget(chain, [best.slot])
                held, start = Held(), 0
            return held, start

    async def _restored(self, lane: Lane, best: Checkpoint) -> int:
        try:
            return await self._compute.restore(str(best.slot), lane.sequence)
        except PooledError as error:
            log.warning("a saved conversation cannot be used: %s", error)
            return -1

    async def _went_back(self, chain: Chain, best: Checkpoint, ids: Sequence[int]) -> tuple[Held, int]:
        """A dense model needs no copy of a conversation that goes on from its end."""
        start = best.start(ids, hybrid=chain.hybrid)
        chain.pending.load(best.slot)
        if not chain.hybrid and start >= best.held.end - 1:
            await self._forget(chain, [best.slot])
        return best.held, start

    async def _park(self, chain: Chain, lane: Lane, ids: Sequence[int], start: int) -> None:
        """So that the other conversation can come back; without memory for it it is gone."""
        best = await self._best(chain, ids, start)
        if lane.held.end - (start if best is None else 0) > WORTH_SAVING:
            await self._keep(chain, lane, lane.held, Keep.ANSWER, best.slot if best is not None else 0)

    async def _best(self, chain: Chain, ids: Sequence[int], start: int) -> Checkpoint | None:
        """A state that some device has not got yet cannot be gone back to."""
        saving = chain.pending.saving
        lost = [k.slot for k in self._known.kept if k.slot != saving and not _everywhere(chain, k.slot)]
        await self._forget(chain, lost)
        return self._known.best(ids, start, but=saving, hybrid=chain.hybrid)

    def marks(self, chain: Chain, marks: Sequence[Mark], ids: Sequence[int], start: int) -> tuple[Mark, ...]:
        """Which places of a prompt are worth keeping when it is read from ``start`` on."""
        return self._known.worth(marks, ids, start) if self._on(chain) else ()

    async def keep(self, chain: Chain, lane: Lane, held: Held, keep: Keep) -> Held:
        """Saves what the lane of all caches holds, which is then all they can go on from.

        Without memory for it the oldest goes, or there is none. Raises LapFailed when the lane was lost.
        """
        async with self._turn:
            lane.check()
            return await self._keep(chain, lane, held, keep)

    async def _keep(self, chain: Chain, lane: Lane, held: Held, keep: Keep, but: int = 0) -> Held:
        if not self._on(chain) or not held.end or chain.pending.dropping_all:
            return held
        if self._known.again(held.fed.ids, keep):
            return held
        await self._forget(chain, [chain.pending.saving] if chain.pending.saving else [])
        await self._prune()
        slot = self._known.next_slot()
        if not await self._save(chain, lane, slot, held, but):
            return held
        held = held.settled()
        lane.states.add(slot)
        await self._forget(chain, self._known.add(Checkpoint(slot, held, keep), but))
        chain.pending.save(slot)
        if self._copies.kept and chain.hybrid:
            note, ids_hash = pack_note(held, keep), hash_ids(held.fed.ids)
            await start_copy(self._compute, self._copies, self._tasks, slot, note, ids_hash, lane.sequence)
        return held

    def _on(self, chain: Chain) -> bool:
        wanted = self._known.answers > 0 and (chain.hybrid or chain.alone)
        return wanted and all(hop.keeps for hop in chain.hops)

    async def _save(self, chain: Chain, lane: Lane, slot: int, held: Held, but: int) -> bool:
        """Twice at most: the second time without the oldest checkpoint."""
        for oldest in (self._known.oldest(but), None):
            try:
                await self._compute.save(str(slot), held.end, lane.sequence)
            except OutOfMemory as error:
                log.info("no memory to keep a conversation: %s", error)
                if oldest is None:
                    return False
                await self._forget(chain, [oldest.slot])
            except PooledError as error:
                log.warning("a conversation cannot be kept: %s", error)
                return False
            else:
                return True
        return False

    # -- forgetting -------------------------------------------------------------------------------------

    async def distrust(self, chain: Chain, lane: Lane) -> None:
        """After an answer that failed: on one device the states it came from and those saved of it are dropped, so that
        other conversations keep theirs; between devices nobody's can be trusted."""
        if not chain.alone:
            await self.clear(chain)
            return
        async with self._turn:
            await self._forget(chain, sorted(lane.states))

    async def clear(self, chain: Chain) -> None:
        """Forgets all states, here, on the devices of the chain and on disk."""
        async with self._turn:
            if chain.hybrid:
                chain.pending.drop_all()
            await self._drop_own()
            await self._copies.drop_all()

    async def _forget(self, chain: Chain, slots: Sequence[int]) -> None:
        self._known.forget(slots)
        chain.pending.drop(slots)
        await self._drop_slots(slots)

    async def _drop_slots(self, slots: Sequence[int]) -> None:
        await self._prune()
        for slot in slots:
            await self._copies.drop(self._compute.signature, str(slot))

    async def _drop_own(self) -> None:
        self._known.forget([kept.slot for kept in self._known.kept])
        await self._prune()

    async def _prune(self) -> None:
        """Copies on this GPU that nothing refers to any more."""
        wanted = {str(kept.slot) for kept in self._known.kept}
        try:
            for name in await self._compute.saved():
                if name not in wanted:
                    await self._compute.drop(name)
        except PooledError as error:
            log.info("kept conversations are gone already: %s", error)

    async def close(self) -> None:
        await self._tasks.close()


def _everywhere(chain: Chain, slot: int) -> bool:
    return all(slot in hop.slots for hop in chain.hops)
