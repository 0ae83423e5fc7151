"""What a device of a benchmarked room is made of: a measured engine, links, and a worker as a process of its own.

``python -m tests.bench.room_device`` is started by ``tests.bench.gpu_rooms``. Beside the protocol's messages a link
carries three of its own: ``bench-delay`` sets the delay of all that the process sends, ``bench-ask`` is answered with
``bench-times``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from app.core.clock import SystemClock
from app.engine.adapter import usable_adapters
from app.engine.device import Gpu
from app.engine.types import ColumnClass, Floats
from app.models.shelf import Shelf
from app.models.table import ModelTable
from app.room import messages as m
from app.room.compute import EngineCompute
from app.room.gate import Credentials
from app.room.ice import IceConfig
from app.room.link import PeerLink
from app.room.signal_servers import SignalServer, parse_server
from app.room.transport import Transport, TransportConfig
from app.room.worker import Worker, WorkerPorts
from tests.e2e.engines import OneFile
from tests.e2e.rooms import record_of
from tests.links.shaper import Shape, Shaper, shaped
from tests.room.loopback import offer_loopback

CODE = "4TKG9P"
PLEDGE = 1 << 40
META: dict[str, object] = {"name": "device", "meta": {}}

T = TypeVar("T")


@dataclass(frozen=True)
class Times:
    """Sums in seconds over calls of an engine: ``thread`` inside its thread, ``waited`` as the event loop saw it."""

    calls: int = 0
    thread: float = 0.0
    waited: float = 0.0

    def plus(self, thread: float, waited: float) -> Times:
        return Times(self.calls + 1, self.thread + thread, self.waited + waited)

    def since(self, before: Times) -> Times:
        return Times(self.calls - before.calls, self.thread - before.thread, self.waited - before.waited)


class MeasuredCompute(EngineCompute):
    """An engine over one file that notes what its calls take.

    With ``right`` set, drafts are what the model will say (``known``, by position) at that rate and wrong otherwise; a
    draft block that the model has runs all the same.
    """

    def __init__(self, path: Path, gpu: int) -> None:
        super().__init__(cast(Shelf, OneFile(path)))
        self._number = gpu
        self.times = Times()
        self.right: float | None = None
        self.known: Sequence[int] = ()
        self._dice = random.Random(3)

    def _open(self) -> Gpu:
        if self._gpu is None:
            self._gpu = Gpu.open(usable_adapters()[self._number])
        return super()._open()

    async def _call(self, work: Callable[[], T]) -> T:
        spent = 0.0

        def timed() -> T:
            nonlocal spent
            began = time.perf_counter()
            try:
                return work()
            finally:
                spent = time.perf_counter() - began

        began = time.perf_counter()
        result = await super()._call(timed)
        self.times = self.times.plus(spent, time.perf_counter() - began)
        return result

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        return await self._counted(kind, super().tokens(ids, position, kind, sequence))

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        return await self._counted(kind, super().hidden(states, position, kind, sequence))

    @property
    def drafts(self) -> bool:
        return self.right is not None

    async def learn(
        self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0
    ) -> None:
        if super().drafts:
            await self._counted(kind, super().learn(ids, before, position, kind, sequence))

    async def _counted(self, kind: ColumnClass, work: Coroutine[Any, Any, T]) -> T:
        """Reading a prompt is no part of writing."""
        before, result = self.times, await work
        self.times = self.times if kind is ColumnClass.STEP else before
        return result

    async def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        if super().drafts:
            await super().draft(token, before, position, count, sequence)
        return [self._guess(at) for at in range(position + 1, position + 1 + count)]

    def _guess(self, position: int) -> int:
        said = self.known[position] if position < len(self.known) else 0
        return said if self._dice.random() < (self.right or 0.0) else said + 1 - 2 * (said % 2)


def transport(server: SignalServer, stripes: int, doubled: int) -> Transport:
    return Transport(TransportConfig((server,), IceConfig(stun=()), stripes, doubled=doubled))


async def holds(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits for what other tasks bring about, without a figure being taken meanwhile."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.005)


class WorkerDevice:
    """A worker in the room of the device that measures."""

    def __init__(self, path: Path, gpu: int, links: Transport, network: Shaper) -> None:
        self.ended = asyncio.Event()
        self._links = links
        self._network = network
        self._host: PeerLink | None = None
        self._compute = MeasuredCompute(path, gpu)
        ports: Any = WorkerPorts(
            me="", compute=self._compute, clock=SystemClock(), table=ModelTable((record_of(path),)),
            dial=links.dial, tell=self._tell, host_link=lambda: self._host,
        )  # type: ignore[arg-type]  # fmt: skip
        self._worker = Worker(ports, lambda: PLEDGE)
        links.on_link = self._linked

    async def run(self, key: str) -> None:
        self._worker.start()
        await self._links.join(CODE, Credentials(key=key), META)
        await self.ended.wait()
        await self._worker.close()
        await self._links.close()
        await self._compute.close()

    def _linked(self, link: PeerLink, _hello: Mapping[str, object]) -> None:
        """The first link is the one to the device that let this one in."""
        link.on_frame = lambda frame: self._worker.frame(frame, link.peer_id)
        if self._host is None:
            self._host = link
            link.on_message = self._said
            link.on_closed = lambda _reason: self.ended.set()

    def _tell(self, message: m.Message) -> None:
        if self._host is not None:
            self._host.send(m.encode(message))

    def _said(self, raw: Mapping[str, object]) -> None:
        match raw.get("t"):
            case "bench-delay":
                self._network.shape = replace(self._network.shape, delay=float(cast(float, raw["seconds"])))
            case "bench-ask" if self._host is not None:
                self._host.send({"t": "bench-times", **asdict(self._compute.times)})
            case _:
                message = m.decode(raw)
                if isinstance(message, m.Load):
                    self._worker.load(message)


async def start_worker(
    server: SignalServer, key: str, path: Path, gpu: int, stripes: int, doubled: int
) -> asyncio.subprocess.Process:
    """A worker that loads what it is dealt and leaves when its link to the model host ends."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.room_device", str(path), "--server", server.label, f"--key={key}",
        "--gpu", str(gpu), "--stripes", str(stripes), "--doubled", str(doubled),
        "--switch", str(1000 * sys.getswitchinterval()),
    )  # fmt: skip


async def be_worker(options: argparse.Namespace) -> None:
    server = parse_server(options.server)
    assert server is not None
    with shaped(Shape(), seed=2) as network:
        links = transport(server, options.stripes, options.doubled)
        await WorkerDevice(options.model, options.gpu, links, network).run(options.key)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--server", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--gpu", type=int, required=True)
    parser.add_argument("--stripes", type=int, required=True)
    parser.add_argument("--doubled", type=int, required=True)
    parser.add_argument("--switch", type=float, required=True)
    options = parser.parse_args()
    sys.setswitchinterval(options.switch / 1000)
    offer_loopback()
    asyncio.run(be_worker(options))


if __name__ == "__main__":
    main()
