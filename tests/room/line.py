"""A model host and its workers without a room around them: computing, frames and control words only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.clock import SystemClock
from app.engine.types import Sampling
from app.models.table import ModelRecord
from app.room import messages as m
from app.room.chain import Chain, Hop
from app.room.checkpoints import Mark
from app.room.drafter import Source
from app.room.frame import Frame
from app.room.generate import Choose, Ending, Generation, Request
from app.room.held import Held
from app.room.laps import LapFailed
from app.room.meta import OURS, Meta
from app.room.ports import Compute, LoadRequest
from app.room.segments import Fed
from app.room.worker import Worker, WorkerPorts
from tests.room.toy import greedy

PLEDGE = 1 << 30
META = Meta(native=OURS, webgpu=True, dspec=1)


@dataclass
class Wire:
    """One direction from a device to the next; notes every frame."""

    deliver: Callable[[Frame], object]
    peer_id: str = ""
    open: bool = True
    frames: list[Frame] = field(default_factory=list[Frame])

    def send_frame(self, frame: Frame) -> None:
        self.frames.append(frame)
        asyncio.get_running_loop().call_soon(self.deliver, frame)


@dataclass(frozen=True)
class Answer:
    """What one run of a line gave; ``sources`` has one entry a token."""

    ids: list[int]
    sources: list[Source]
    ending: Ending
    generation: Generation

    @property
    def held(self) -> Held:
        return self.generation.held


class Line:
    """Layers dealt at ``cuts``: the model host's compute first, one worker a further one."""

    def __init__(
        self, computes: Sequence[Compute], record: ModelRecord, cuts: Sequence[int], table: Any, meta: Meta = META
    ) -> None:
        self.record, self.cuts, self.table = record, cuts, table
        self.computes = list(computes)
        self.told: list[m.Message] = []
        self.workers: list[Worker] = []
        ends = [*cuts, record.layers]
        names = [f"worker{i}" for i in range(1, len(computes))]
        self.hops = [
            Hop(name, name, meta, m.Load(record.key, (lo, hi), 0), None, ready=True, keeps=True)
            for name, lo, hi in zip(names, cuts, ends[1:], strict=True)
        ]
        self.chain = Chain(self.computes[0], record.hidden, self.hops, SystemClock(), hybrid=record.hybrid)
        self.wires = [Wire(lambda frame, i=i: self.workers[i].frame(frame, "before")) for i in range(len(names))]
        self.home = Wire(lambda frame: self.chain.returned(frame, names[-1]))
        for hop, wire in zip(self.hops, self.wires, strict=True):
            hop.link = wire  # type: ignore[assignment]

    async def start(self, request: LoadRequest, copies: Sequence[Any] = ()) -> Line:
        """``request`` is the model host's; the workers get the rest of the layers."""
        await self.computes[0].load(request, lambda _share: None)
        for i, compute in enumerate(self.computes[1:]):
            self.workers.append(self._worker(i, compute, copies[i] if copies else None))
            self.workers[i].start()
        await self.load(request)
        return self

    async def load(self, request: LoadRequest) -> None:
        for i, (worker, hop) in enumerate(zip(self.workers, self.hops, strict=True)):
            after = m.MODEL_HOST if i + 1 == len(self.workers) else f"next {i + 1}"
            kv = {"f16": "f16", "int8": "q8", "f32": "f32"}[request.kv.value]
            hop.load = m.Load(self.record.key, hop.load.range, request.context, kv, next=after, prev="before")
            worker.load(hop.load)
        while sum(isinstance(message, m.Ready) for message in self.told) < len(self.workers):
            assert not [message for message in self.told if isinstance(message, m.DeviceError)], self.told
            await asyncio.sleep(0.001)

    def _worker(self, i: int, compute: Compute, copies: Any) -> Worker:
        async def dial(peer_id: str, fresh: bool) -> Any:
            return self.wires[i + 1]

        ports: Any = WorkerPorts(
            me=f"worker{i + 1}", compute=compute, clock=SystemClock(), table=self.table, dial=dial,
            tell=self.tell, host_link=lambda: self.home, **({"copies": copies} if copies else {}),  # type: ignore[arg-type, return-value]
        )  # fmt: skip
        return Worker(ports, lambda: PLEDGE)

    def tell(self, message: m.Message) -> None:
        self.told.append(message)
        if isinstance(message, m.DeviceError):
            self.chain.laps.fail_all(LapFailed(message.message))

    async def answer(
        self, ids: Sequence[int], most: int, *, held: Held | None = None, record: Fed | None = None, start: int = 0,
        choose: Choose = greedy, sampling: Sampling | None = None, context: int = 2048, stops: Sequence[int] = (),
        marks: Sequence[Mark] = (), keep: Any = None, on_token: Callable[[Generation], None] = lambda _g: None,
    ) -> Answer:  # fmt: skip
        held = held or Held()
        sources: list[Source] = []

        async def keep_nothing(held: Held, _mark: Mark) -> Held:
            return held

        def emit(_token: int, source: Source) -> None:
            sources.append(source)
            on_token(generation)

        request = Request(tuple(ids), most, sampling or Sampling(), context, frozenset(stops), tuple(marks))
        generation = Generation(
            chain=self.chain, request=request, held=held, record=record or held.fed, start=start, choose=choose,
            emit=emit, clock=SystemClock(), drafter=self.chain.drafter(ids, start, held.before(start)),
            keep=keep or keep_nothing,
        )  # fmt: skip
        ending = await generation.run()
        return Answer(generation.answer, sources, ending, generation)

    async def close(self) -> None:
        for worker in self.workers:
            await worker.close()


def depth(fixed: int) -> Any:
    """A depth control that always says the same."""

    class Fixed:
        def depth(self, most: int) -> int:
            return min(fixed, most)

        def measured(self, depth: int, tokens: int, seconds: float) -> None: ...

    return Fixed()
