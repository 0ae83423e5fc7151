"""A model host's writer over one device, without a room: conversations of token ids, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from app.core.clock import SystemClock
from app.engine.types import Sampling, Step, Stepped
from app.models.table import ModelRecord
from app.room.answering import Answering, Draft, Running
from app.room.chain import Chain
from app.room.copies import Copies, NoCopies
from app.room.dealing import Stage
from app.room.drafter import Source
from app.room.generate import Choose, Ending
from app.room.ports import Compute
from app.room.saves import Saves
from app.room.serial import SerialCompute
from app.room.writer import Writer
from tests.room.toy import greedy


@dataclass
class Work:
    """An answer of ``most`` tokens to ``prompt``; ``shared`` as in ``Draft``."""

    prompt: tuple[int, ...]
    most: int
    sampling: Sampling
    shared: int | None = 0
    now: Answering = field(default_factory=Answering)
    sources: list[Source] = field(default_factory=list[Source])
    steering: Any = None

    async def draft(self, running: Running) -> Draft:
        ids = (*self.prompt, *self.now.ids)
        more = {"steering": self.steering} if self.steering is not None else {}
        return Draft(ids, self.most - len(self.now.ids), self.sampling, shared=self.shared, **more)

    def say(self, token: int, source: Source) -> bool:
        self.sources.append(source)
        return False


class Alone:
    """One device that holds the whole model. ``passes`` are the columns of each sequence in every pass of steps.

    ``lanes`` where fewer conversations are to be kept than the device could.
    """

    def __init__(
        self, compute: Compute, record: ModelRecord, *, choose: Choose = greedy, answers: int = 2, context: int = 512,
        copies: Copies | None = None, lanes: int = 0,
    ) -> None:  # fmt: skip
        self.passes: list[dict[int, int]] = []
        self.engine = compute
        self.compute = SerialCompute(Counted(compute, self.passes, lanes))  # type: ignore[arg-type]
        self.answers, self.record = answers, record
        self.saves = Saves(self.compute, copies or NoCopies())
        self.dealing = SimpleNamespace(
            stage=Stage.IDLE,
            chain=None,
            language=SimpleNamespace(tokenizer=SimpleNamespace(stop_ids=frozenset[int]())),
            planned=SimpleNamespace(context=SimpleNamespace(positions=context)),
        )
        dealing: Any = self.dealing
        self.writer = Writer(dealing, self.saves, choose, SystemClock(), lambda _now, _event: None)

    async def online(self) -> Alone:
        await self.saves.reload(self.answers)
        self.dealing.chain = Chain(
            self.compute, self.record.hidden, (), SystemClock(), hybrid=self.record.hybrid  # type: ignore[arg-type]
        )  # fmt: skip
        self.dealing.stage = Stage.ONLINE
        self.writer.online()
        return self

    async def ask(
        self, ids: Sequence[int], most: int, *, shared: int | None = 0, sampling: Sampling | None = None
    ) -> Work:
        work = Work(tuple(ids), most, sampling or Sampling(), shared)
        await self.write(work)
        return work

    async def write(self, work: Work) -> Ending:
        return await self.writer.write(work)


class Counted:
    """A compute that notes what its passes had; ``lanes``: as if it kept so many conversations."""

    def __init__(self, compute: Compute, passes: list[dict[int, int]], lanes: int) -> None:
        self._compute = compute
        self._passes = passes
        self._lanes = lanes

    @property
    def sequences(self) -> int:
        return self._lanes or self._compute.sequences

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compute, name)

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        self._passes.append({step.sequence: len(step.ids) for step in steps})
        return await self._compute.step(steps)
