"""Words a second of rooms whose devices are processes on one GPU: ``python -m tests.bench.gpu_rooms MODEL.gguf``.

A model host and its workers as the product has them from one drawn token to the next: real engines, real connections
on 127.0.0.1 whose datagrams are delayed on their way out. What is left out is language: the prompt is made of random
ids. With drafts, the tokens of the run without them are guessed right at the given rate; both must say the same.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from app.core.clock import SystemClock
from app.engine.arch import read_config
from app.engine.gguf import GgufFile
from app.engine.sampling import choose
from app.engine.types import KvFormat, Part, Sampling
from app.room import messages as m
from app.room.chain import Chain, Hop
from app.room.checkpoints import Mark
from app.room.drafter import Acceptance, Drafter, LookupWidths
from app.room.frame import Frame
from app.room.gate import Gate
from app.room.generate import Generation, Request
from app.room.held import Held
from app.room.laps import LapFailed
from app.room.link import PeerLink
from app.room.meta import OURS, Meta
from app.room.ports import LoadRequest
from app.room.segments import Fed
from app.room.transport import STRIPES
from app.room.wire import DOUBLED_SLICES
from tests.bench.room_device import CODE, META, PLEDGE, MeasuredCompute, Times, holds, start_worker, transport
from tests.e2e.rooms import record_of
from tests.links.shaper import Shape, Shaper, shaped
from tests.room.loopback import offer_loopback, room_server

LOADED_WITHIN_S = 300.0
ENDS_WITHIN_S = 20.0
WARM = 8
OURS_META = Meta(native=OURS, webgpu=True, dspec=1)
DRAWN = Sampling(temperature=0.7, top_k=40, top_p=0.95, seed=7)


@dataclass(frozen=True)
class Plan:
    """What is measured: ``words`` behind a prompt of ``prompt`` ids, ``repeats`` times, devices on ``gpus`` in turn."""

    model: Path
    words: int
    prompt: int
    repeats: int
    gpus: int
    stripes: int
    doubled: int

    @property
    def context(self) -> int:
        return self.prompt + self.words + 16


@dataclass(frozen=True)
class Run:
    """One answer: ``seconds`` for its last ``words``. ``engines`` are each device's sums, the model host's first."""

    ids: tuple[int, ...]
    seconds: float
    words: int
    steps: int
    drafts: Acceptance
    engines: tuple[Times, ...]

    @property
    def rate(self) -> float:
        return self.words / self.seconds

    @property
    def calls(self) -> int:
        return sum(times.calls for times in self.engines)


class BenchRoom:
    """The model host of a measured room."""

    def __init__(self, plan: Plan, network: Shaper) -> None:
        self.plan = plan
        self.record = record_of(plan.model)
        self.compute = MeasuredCompute(plan.model, 0)
        self.links: dict[str, PeerLink] = {}
        self._network = network
        self._times: dict[str, Times] = {}
        self._hops: list[Hop] = []
        self._chain: Chain | None = None
        ids = np.random.default_rng(5).integers(0, self.record.vocab, plan.prompt)
        self._prompt = tuple(int(i) for i in ids)

    def linked(self, link: PeerLink, _hello: Mapping[str, object]) -> None:
        self.links[link.peer_id] = link
        link.on_message = lambda raw: self._said(link.peer_id, raw)
        link.on_frame = lambda frame: self._returned(frame, link.peer_id)

    def _returned(self, frame: Frame, sender: str) -> None:
        if self._chain is not None:
            self._chain.returned(frame, sender)

    def _said(self, peer_id: str, raw: Mapping[str, Any]) -> None:
        if raw.get("t") == "bench-times":
            self._times[peer_id] = Times(int(raw["calls"]), float(raw["thread"]), float(raw["waited"]))
            return
        hop, message = next((hop for hop in self._hops if hop.id == peer_id), None), m.decode(raw)
        match message:
            case m.Ready() if hop is not None:
                hop.ready = True
            case m.Telemetry() if hop is not None:
                hop.timings = message.k
            case m.DeviceError() if self._chain is not None:
                print(f"a worker: {message.message}", flush=True)
                self._chain.laps.fail_all(LapFailed(message.message, repairable=False))
            case _:
                pass

    async def load(self, me: str) -> None:
        """Deals the layers evenly, the model host's first."""
        ids = [me, *self.links]
        cuts = [round(i * self.record.layers / len(ids)) for i in range(len(ids) + 1)]
        bounds = list(pairwise(cuts))
        for i, (peer_id, link) in enumerate(self.links.items(), 1):
            after = ids[i + 1] if i + 1 < len(ids) else m.MODEL_HOST
            load = m.Load(self.record.key, bounds[i], self.plan.context, "f16", next=after, host=me, prev=ids[i - 1])
            self._hops.append(Hop(f"worker{i}", peer_id, OURS_META, load, cast(Any, link), keeps=True))
        self._chain = Chain(self.compute, self.record.hidden, self._hops, SystemClock(), hybrid=self.record.hybrid)
        draft = read_config(GgufFile.open(self.plan.model)).drafts
        part = Part(*bounds[0], embed=True, head=True, draft=draft)
        request = LoadRequest(self.record.key, part, self.plan.context, KvFormat.F16, PLEDGE)
        for hop, link in zip(self._hops, self.links.values(), strict=True):
            link.send(m.encode(hop.load))
        await self.compute.load(request, lambda _share: None)
        await holds(lambda: all(hop.ready for hop in self._hops), LOADED_WITHIN_S)

    async def delay(self, seconds: float) -> None:
        """Every datagram of every device takes so long from now on."""
        self._network.shape = replace(self._network.shape, delay=seconds)
        for link in self.links.values():
            link.send({"t": "bench-delay", "seconds": seconds})
        await asyncio.sleep(0.1 + 4 * seconds)

    async def answer(self, right: float | None, known: Sequence[int] = ()) -> Run:
        """Writes an answer from nothing; its speed counts once it is under way."""
        assert self._chain is not None
        self.compute.right, self.compute.known = right, (*self._prompt, *known)
        drafter = Drafter(self.compute, LookupWidths(), self._chain.depth, self._prompt)
        clock, stamps = SystemClock(), list[float]()
        request = Request(self._prompt, self.plan.words, DRAWN, self.plan.context, frozenset())
        generation = Generation(
            chain=self._chain, request=request, held=Held(), record=Fed(), start=0, choose=choose,
            emit=lambda _token, _source: stamps.append(clock.now()), clock=clock, drafter=drafter, keep=_nothing_kept,
        )  # fmt: skip
        engines, steps = await self._engines(), self._chain.stats.count
        await generation.run()
        spent = tuple(after.since(before) for before, after in zip(engines, await self._engines(), strict=True))
        return Run(
            tuple(generation.answer), stamps[-1] - stamps[WARM - 1], len(stamps) - WARM,
            self._chain.stats.count - steps, drafter.acceptance, spent,
        )  # fmt: skip

    async def _engines(self) -> tuple[Times, ...]:
        self._times.clear()
        for link in self.links.values():
            link.send({"t": "bench-ask"})
        await holds(lambda: len(self._times) == len(self.links))
        return (self.compute.times, *(self._times[peer_id] for peer_id in self.links))

    async def close(self) -> None:
        for link in self.links.values():
            link.close("measured")


async def _nothing_kept(held: Held, _mark: Mark) -> Held:
    return held


@asynccontextmanager
async def bench_room(plan: Plan, devices: int) -> AsyncGenerator[BenchRoom]:
    """A loaded room of so many devices, the others being processes."""
    with shaped(Shape()) as network:
        async with room_server() as server, AsyncExitStack() as ends:
            room, gate = BenchRoom(plan, network), Gate()
            ends.push_async_callback(room.compute.close)
            links = transport(server, plan.stripes, plan.doubled)
            ends.push_async_callback(links.close)
            links.on_link = room.linked
            await links.open_room(CODE, gate, META)
            for count in range(1, devices):
                gpu = count % plan.gpus
                process = await start_worker(server, gate.key, plan.model, gpu, plan.stripes, plan.doubled)
                ends.push_async_callback(_ended, process)
                await holds(lambda count=count: len(room.links) == count)
            ends.push_async_callback(room.close)
            await holds(lambda: all(link.stripes == plan.stripes for link in room.links.values()))
            await room.load(links.me)
            yield room


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Its link has been closed, so it goes by itself."""
    try:
        await asyncio.wait_for(process.wait(), ENDS_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def row(devices: int, delay: float, drafts: bool, runs: Sequence[Run]) -> str:
    """The run in the middle, in ms a step."""
    run = sorted(runs, key=lambda run: run.rate)[len(runs) // 2]
    step = 1000 * run.seconds / run.words * (len(run.ids) / run.steps)
    engines = [1000 * times.thread / run.steps for times in run.engines]
    hops = sum(1000 * (times.waited - times.thread) / run.steps for times in run.engines)
    right = f"{run.drafts.accepted / max(run.drafts.judged, 1):4.0%}" if drafts else "   -"
    return (
        f"{devices:>7} {1000 * delay:>5.0f} {'drafts' if drafts else 'plain':>6} | {run.rate:7.1f} tok/s "
        f"{1000 / run.rate:7.2f} ms a token | step {step:7.2f} = engines {' + '.join(f'{ms:.2f}' for ms in engines)}, "
        f"threads {hops:.2f}, wire and Python {step - sum(engines) - hops:.2f} | "
        f"{run.calls / run.steps:.1f} calls a step | right {right}"
    )


async def measure(plan: Plan, devices: int, delays: Sequence[float], right: float | None) -> list[str]:
    """A line for each delay, without drafts and with."""
    lines: list[str] = []
    async with bench_room(plan, devices) as room:
        await room.answer(None)
        for delay in delays if devices > 1 else [0.0]:
            await room.delay(delay)
            plain = [await room.answer(None) for _ in range(plan.repeats)]
            lines.append(row(devices, delay, False, plain))
            print(lines[-1], flush=True)
            if right is None:
                continue
            await room.answer(right, plain[0].ids)
            drafts = [await room.answer(right, plain[0].ids) for _ in range(plan.repeats)]
            if any(run.ids != plain[0].ids for run in [*plain, *drafts]):
                raise SystemExit("the same prompt was answered in two ways")
            lines.append(row(devices, delay, True, drafts))
            print(lines[-1], flush=True)
    return lines


async def table(plan: Plan, options: argparse.Namespace) -> None:
    record = record_of(plan.model)
    print(
        f"{plan.model.name}: {record.layers} layers of {record.hidden}, {plan.words} words behind {plan.prompt} ids, "
        f"{plan.stripes} connections a link, frames of up to {plan.doubled} slices sent twice; delays one way",
        flush=True,
    )
    for devices in options.devices:
        await measure(plan, devices, [ms / 1000 for ms in options.delay], options.right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--devices", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--delay", type=float, nargs="*", default=[0.0], help="ms one way")
    parser.add_argument("--right", type=float, help="share of right drafts; without it none are made")
    parser.add_argument("--words", type=int, default=256)
    parser.add_argument("--prompt", type=int, default=17)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gpus", type=int, default=1, help="GPUs the devices take in turn")
    parser.add_argument("--stripes", type=int, default=STRIPES)
    parser.add_argument("--doubled", type=int, default=DOUBLED_SLICES)
    parser.add_argument("--switch", type=float, default=0.5, help="ms a thread keeps the interpreter, as in the window")
    options = parser.parse_args()
    sys.setswitchinterval(options.switch / 1000)
    plan = Plan(
        options.model, options.words, options.prompt, options.repeats, options.gpus, options.stripes, options.doubled
    )
    offer_loopback()
    asyncio.run(table(plan, options))


if __name__ == "__main__":
    main()
