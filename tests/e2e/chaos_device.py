"""A device of a chaos room as a process of its own: it does what its standard input says and tells what it sees.

Both are JSON lines. SIGUSR1 writes every thread's stack to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import faulthandler
import gc
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from app.core.clock import SystemClock
from app.core.secrets import open_secrets
from app.engine import sampling
from app.engine.gguf import GgufFile
from app.engine.tokenizer import GgufTokenizer
from app.engine.types import Candidates, ColumnClass, KvFormat, Part, Sampling
from app.models.table import ModelRecord
from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.assembly import Application, Network, assemble
from app.room.disk_memory import open_memory
from app.room.generate import Choose
from app.room.ice import IceConfig
from app.room.planner import SplitMode
from app.room.ports import LoadRequest
from app.room.precision import Precision
from app.room.settings import RoomSettings
from app.room.state import Phase, RoomState
from tests.e2e.rooms import table_with
from tests.links.shaper import Shape, Shaper, shaped
from tests.room.loopback import offer_loopback

SETTINGS = RoomSettings(
    ask_first=False,
    style=Style(wording=Wording.EXACT, length=Length.SHORT),
    split=SplitMode.MEMORY,
    precision=Precision.FULL,
)


class FasterClock:
    """The machine's clock, running ``times`` as fast."""

    def __init__(self, times: float) -> None:
        self._system, self._times = SystemClock(), times

    def now(self) -> float:
        return self._system.now() * self._times


def ending_every(positions: int, stop: int) -> Choose:
    """Answers end at the next position that ``positions`` divides: short ones, and the same ones everywhere."""

    def choose(candidates: Candidates, wish: Sampling, position: int) -> int:
        return stop if position % positions == 0 else sampling.choose(candidates, wish, position)

    return choose


@dataclass(frozen=True)
class Seen:
    """What the other side of standard output learns of a state. ``written`` are letters of the running answer.

    ``finished`` exchanges are over, ``refused`` counts notices, ``host`` runs the model, ``layers`` are held here.
    """

    phase: str = ""
    link: str = ""
    people: int = 0
    holders: tuple[str, ...] = ()
    layers: tuple[int, int] | None = None
    host: str = ""
    can_start: bool = False
    can_ask: bool = False
    asked: str = ""
    live: bool = False
    written: int = 0
    finished: int = 0
    refused: int = 0
    trouble: str = ""


class Eyes:
    """Tells every change of what is seen."""

    def __init__(self) -> None:
        self._seen = Seen()
        self._notices: set[int] = set()

    def look(self, state: RoomState) -> None:
        self._notices |= {notice.id for notice in state.notices}
        last = state.transcript[-1] if state.transcript else None
        seen = Seen(
            phase=state.phase.value,
            link=state.invite.link if state.invite else "",
            people=len([device for device in state.people if not device.away]),
            holders=tuple(device.name for device in state.devices if device.layers),
            layers=state.my_device.layers if state.my_device else None,
            host=next((device.name for device in state.devices if device.model_host), ""),
            can_start=state.can_start,
            can_ask=state.can_ask,
            asked=last.question if last else "",
            live=state.live is not None,
            written=len(state.live.raw) if state.live else 0,
            finished=sum(not item.live for item in state.transcript),
            refused=len(self._notices),
            trouble=" ".join(filter(None, (state.trouble, *(notice.text for notice in state.notices)))),
        )
        if seen != self._seen:
            self._seen = seen
            tell("seen", asdict(seen))


def tell(kind: str, value: object) -> None:
    print(json.dumps({"kind": kind, "value": value}), flush=True)


def resident_mb() -> float:
    """Resident memory once everything that can be given back has been."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process().memory_info().rss / 2**20


def transcript_of(state: RoomState) -> list[dict[str, Any]]:
    shown = [item for item in state.transcript if not item.replaced]
    return [{"question": i.question, "answer": i.raw or i.answer, "failed": i.failed, "stats": i.stats} for i in shown]


class Orders:
    """What standard input may say, an object with one member each. ``leave`` and ``close`` end the process."""

    def __init__(self, application: Application, network: Shaper) -> None:
        self.over = asyncio.Event()
        self._application = application
        self._network = network
        self._orders: dict[str, Callable[[Any], object]] = {
            "open": lambda of: self._do(it.OpenRoom(of["name"], of["gb"])),
            "join": lambda of: self._do(it.JoinRoom(of["link"], of["name"], of["gb"])),
            "reopen": lambda _: self._do(it.Reopen()),
            "model": lambda key: self._do(it.ChooseModel(key)),
            "start": lambda _: self._do(it.Start()),
            "ask": lambda text: self._do(it.Ask(text)),
            "redeal": lambda _: self._do(it.Redeal()),
            "network": self._reshape,
            "transcript": lambda _: tell("transcript", transcript_of(application.room.state)),
            "memory": lambda _: tell("memory", resident_mb()),
            "leave": self._leave,
            "close": lambda _: self.over.set(),
        }

    def obey(self, line: str) -> None:
        for word, value in json.loads(line).items():
            self._orders[word](value)

    def _do(self, intent: it.Intent) -> None:
        self._application.room.handle(intent)

    def _reshape(self, shape: dict[str, Any]) -> None:
        self._network.shape = Shape(**shape)

    def _leave(self, _: object) -> None:
        self._application.room.subscribe(lambda state: self.over.set() if state.phase is Phase.START else None)
        self._do(it.Leave())


async def standard_input() -> AsyncIterator[str]:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield line.decode()


async def warm_up(application: Application, record: ModelRecord) -> None:
    """A driver keeps every kernel it compiled, and a deal may bring layers of a kind this process never held: all kinds
    run once, so that memory that grows later is a leak."""
    compute, part = application.compute, Part(0, record.layers, True, True, record.draft_bytes > 0)
    await compute.load(LoadRequest(record.key, part, 2048, KvFormat.F16, 1 << 31), lambda _share: None)
    states = await compute.tokens([5] * 40, 0, ColumnClass.PROMPT)
    for width in range(1, 9):
        states = await compute.tokens([5] * width, 40, ColumnClass.STEP)
        await compute.candidates(states)
    if compute.drafts:
        await compute.learn([5], states[-1:], 41, ColumnClass.STEP)
        await compute.draft(5, states[-1], 42, 3)
    await compute.save("warm", 40)
    await compute.unload()


async def run(options: argparse.Namespace) -> None:
    stop = min(GgufTokenizer(GgufFile.open(options.model).metadata).stop_ids)
    network = Network((options.signal,), IceConfig(stun=()), stripes=1, cloud=False)
    secrets, table = await open_secrets(), table_with(options.model)
    with shaped(Shape(), options.seed) as shaper:
        application = await assemble(
            network,
            SETTINGS,
            table,
            secrets.passes(),
            memory=open_memory(secrets),
            fixed_host=options.fixed_host,
            clock=FasterClock(1 / options.time_scale),
            choose=ending_every(options.ending, stop),
        )
        await warm_up(application, table.models[0])
        application.room.subscribe(Eyes().look)
        await obey_until_over(Orders(application, shaper))
        await application.close()
    secrets.close()


async def obey_until_over(orders: Orders) -> None:
    async def obey() -> None:
        async for line in standard_input():
            orders.obey(line)
        orders.over.set()

    obeying = asyncio.create_task(obey(), name="orders")
    tell("ready", None)
    await orders.over.wait()
    obeying.cancel()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signal", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1, help="of what the network does to datagrams")
    parser.add_argument("--ending", type=int, default=48, help="answers end at positions that this divides")
    parser.add_argument("--time-scale", type=float, default=1.0, help="below 1, the room's clock runs faster")
    parser.add_argument("--fixed-host", action="store_true")
    options = parser.parse_args()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(name)s %(message)s")
    offer_loopback()
    asyncio.run(run(options))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
