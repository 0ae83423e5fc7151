"""A worker's saved states: what a frame's control words do to them, and their copies on disk (spec: rooms §5.7)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from app.core.errors import PooledError
from app.room import messages as m
from app.room.copies import Copies, start_copy
from app.room.frame import DROP_ALL, Frame
from app.room.ports import Compute, State
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

READ_BACK = 4
"""Newest copies that are read when layers are loaded: two answers, a pin and a turn."""


@dataclass
class WorkerState:
    """Where this device's layers stand, and what is kept of earlier places."""

    compute: Compute
    copies: Copies
    tell: Callable[[m.Message], None]
    tasks: Tasks
    _start: int = 0
    _end: int = 0

    async def read_back(self) -> tuple[int, ...]:
        """After a load: forgets what is on the GPU and fills it from the disk; the slots that are there now."""
        await self._drop_all()
        signature = self.compute.signature
        found: list[int] = []
        for name in [n for n in await self.copies.names(signature) if n.isdecimal()][:READ_BACK]:
            copy = await self.copies.read(signature, name)
            try:
                if copy is not None:
                    await self.compute.adopt(name, State(copy.end, copy.data))
                    found.append(int(name))
            except PooledError as error:
                log.warning("the saved conversation %s is not read back: %s", name, error)
        return tuple(sorted(found))

    async def obey(self, frame: Frame) -> None:
        """Rollback, save, drop, load, in this order; StateError when there is nothing to load.

        A reset comes with position 0, which starts afresh by itself.
        """
        control = frame.control
        if control.rollback is not None:
            self._end = min(self._end, self._start + control.rollback + 1)
        if control.save:
            await self._save(control.save)
        await self._drop(control.drop)
        if control.load:
            end = await self.compute.restore(str(control.load))
            if end != frame.position:
                raise PooledError(f"The saved state {control.load} ends at {end}, not at {frame.position}.")

    def ran(self, frame: Frame, columns: int) -> None:
        self._start, self._end = frame.position, frame.position + columns

    async def _save(self, slot: int) -> None:
        """A device that cannot keep its part says so; the answer that goes on does not need it."""
        try:
            await self.compute.save(str(slot), self._end)
        except PooledError as error:
            log.info("no room to keep a conversation: %s", error)
            self.tell(m.CheckpointsLoaded(slots=await self._held(), lost=(slot,)))
            return
        if self.copies.kept:
            await start_copy(self.compute, self.copies, self.tasks, slot)

    async def _held(self) -> tuple[int, ...]:
        return tuple(sorted(int(name) for name in await self.compute.saved() if name.isdecimal()))

    async def _drop(self, slots: tuple[int, ...]) -> None:
        if DROP_ALL in slots:
            await self._drop_all()
            await self.copies.drop_all()
            return
        for slot in slots:
            await self.compute.drop(str(slot))
            await self.copies.drop(self.compute.signature, str(slot))

    async def _drop_all(self) -> None:
        for name in await self.compute.saved():
            await self.compute.drop(name)
