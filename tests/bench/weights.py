"""Weights between two processes over TLS, and what they do to the hops of an answer: ``python -m tests.bench.weights``.

A second process lends a file of ``--mb`` megabytes. First the file is fetched with nobody answering, once thrown
away and once into a partial file. Then 10 KB go back and forth over a WebRTC link of the same two processes: alone,
beside weights that are not held back, and beside weights paced by the round trips of pings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from app.core.clock import SystemClock
from app.models.gather import Put
from app.models.partial import Filling, PartialFile
from app.models.ranges import Span, pieces
from app.models.store import path_of
from app.models.table import ModelFile, ModelRecord, ModelTable, Source, builtin_table
from app.room import messages as m
from app.room.certificate import new_certificate
from app.room.frame import Frame, FrameKind
from app.room.link import PeerLink
from app.room.ports import Message
from app.room.weights.exchange import WeightExchange, WeightPorts
from app.room.weights.lenders import DirectSource
from tests.room.loopback import offer_loopback
from tests.room.rtc_pair import connection_with, link_over

PIECE = 64 << 20
HOP = bytes(10_000)
HOPS, THINK = 800, 0.004
SETTLE = 5.0
ROUNDS = 3
PING = 0.5
"""Seconds between pings while a room answers."""
SWITCH_INTERVAL = 0.0005
"""As the window sets it."""


def record(size: int) -> ModelRecord:
    import msgspec

    file = ModelFile("m.gguf", size, "", (Source(hub="a/b", file="m.gguf"),))
    return msgspec.structs.replace(builtin_table().models[0], key="bench", files=(file,))


class Device:
    """One of the two processes: a link, an exchange and a watch on round trips."""

    def __init__(self, link: PeerLink, size: int, certificate: Any) -> None:
        self.link = link
        self.answering = False
        self.record = record(size)
        self.exchange = WeightExchange(
            WeightPorts(
                me="bench", clock=SystemClock(), table=ModelTable((self.record,)), links=lambda: [link],
                dial=self._dial, ours=lambda _peer: True, model_host=lambda: "", answering=lambda: self.answering,
                relay_configured=lambda: False, certificate=certificate, addresses=lambda: ["127.0.0.1"],
            )
        )  # fmt: skip
        self.echoed = asyncio.Event()
        link.on_message = self._said
        link.on_frame = self._frame
        link.start()

    async def _dial(self, _peer: str, _fresh: bool) -> PeerLink:
        return self.link

    def _said(self, raw: Message) -> None:
        match message := m.decode(raw):
            case m.Ping():
                self.link.send(m.encode(m.Pong(ts=message.ts)))
            case m.Pong():
                self.exchange.pacer.measured(max(0.0, SystemClock().now() - message.ts / 1000))
            case None:
                pass
            case _:
                self.exchange.heard(self.link, message)

    def _frame(self, frame: Frame) -> None:
        if self.link.dialed:
            self.echoed.set()
        else:
            self.link.send_frame(frame)

    async def ping(self) -> None:
        """As a room's watcher does while an answer runs."""
        while True:
            self.link.send(m.encode(m.Ping(ts=SystemClock().now() * 1000)))
            await asyncio.sleep(PING)


# -- the process that lends ----------------------------------------------------------------------


async def lend(size: int) -> None:
    offer_loopback()
    certificate = new_certificate()
    connection, opened = connection_with(certificate)
    reader = await _stdin()
    print(json.dumps(await connection.take_offer(json.loads(await reader.readline()))), flush=True)
    device = Device(await link_over(connection, opened, "asker", dialed=False), size, certificate)
    device.answering = True
    pinging = asyncio.create_task(device.ping(), name="pings")
    while command := (await reader.readline()).decode().split():
        if command[0] == "answering":
            device.answering = command[1] == "1"
        print(json.dumps(device.exchange.pacer.rate), flush=True)
    pinging.cancel()
    await device.exchange.close()
    connection.close("done")
    await connection.closed()


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


class Lender:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, line: str) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line.encode() + b"\n")
        return json.loads(await self._process.stdout.readline())


@asynccontextmanager
async def lender_with(size: int, home: Path) -> AsyncIterator[Lender]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.weights", "--lend", str(size),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={**os.environ, "POOLED_HOME": str(home)},
    )  # fmt: skip
    try:
        yield Lender(process)
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


# -- the process that asks -----------------------------------------------------------------------


async def fetched(device: Device, source: DirectSource, size: int, put_of: Callable[[Span], Put]) -> float:
    """Megabytes a second."""
    began = time.perf_counter()
    for span in pieces([Span(0, size)], PIECE):
        await source.fetch(device.record.files[0], span, put_of(span))
    return size / 1e6 / (time.perf_counter() - began)


async def into_file(device: Device, source: DirectSource, size: int, folder: Path) -> float:
    """With every range flushed and noted, as a load does."""
    partial = PartialFile(folder / "partial", size, "")
    partial.create()
    began = time.perf_counter()
    for span in pieces([Span(0, size)], PIECE):
        filling = Filling(partial, span, lent=True)
        await source.fetch(device.record.files[0], span, filling.put)
        await asyncio.to_thread(filling.close)
    assert partial.whole
    return size / 1e6 / (time.perf_counter() - began)


async def hops(device: Device) -> list[float]:
    """Milliseconds of each, sorted."""
    times: list[float] = []
    for position in range(HOPS):
        device.echoed.clear()
        began = time.perf_counter()
        device.link.send_frame(Frame(FrameKind.HIDDEN, position, 1, HOP))
        await device.echoed.wait()
        times.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(THINK)
    return sorted(times)


@asynccontextmanager
async def flowing(device: Device, source: DirectSource, size: int) -> AsyncIterator[list[int]]:
    """Weights all the while; the list's one number counts them."""
    count = [0]

    def put(data: bytes | memoryview) -> None:
        count[0] += len(data)

    async def again() -> None:
        while True:
            for span in pieces([Span(0, size)], PIECE):
                await source.fetch(device.record.files[0], span, put)

    task = asyncio.create_task(again(), name="weights")
    try:
        yield count
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def beside(
    device: Device, source: DirectSource, lender: Lender, size: int, answering: str
) -> tuple[list[float], str]:
    await lender.ask(f"answering {answering}")
    async with flowing(device, source, size) as count:
        if answering == "1":
            await asyncio.sleep(SETTLE)
        before, began = count[0], time.perf_counter()
        times = await hops(device)
        speed = (count[0] - before) / 1e6 / (time.perf_counter() - began)
    rate = await lender.ask("rate") / 1e6
    return times, f"{_ends(times)}, weights {speed:.0f} MB/s" + (f", rate {rate:.0f}" if answering == "1" else "")


def _keep(best: dict[str, float], name: str, times: list[float]) -> None:
    best[name] = min(best.get(name, float("inf")), _p99(times))


def _p99(times: list[float]) -> float:
    return times[len(times) * 99 // 100]


def _ends(times: list[float]) -> str:
    return f"p50 {times[len(times) // 2]:.2f} ms, p99 {_p99(times):.2f} ms"


async def measure(size: int, folder: Path) -> None:
    offer_loopback()
    os.environ["POOLED_HOME"] = str(folder / "lent")
    target = path_of(record(size), record(size).files[0])
    target.parent.mkdir(parents=True)
    with target.open("wb") as stream:
        for span in pieces([Span(0, size)], PIECE):
            stream.write(os.urandom(span.size))
        os.fsync(stream.fileno())
    async with lender_with(size, folder / "lent") as lender:
        certificate = new_certificate()
        connection, opened = connection_with(certificate)
        await connection.take_answer(await lender.ask(json.dumps(await connection.make_offer())))
        device = Device(await link_over(connection, opened, "lender", dialed=True), size, certificate)
        await report(device, lender, size, folder)
        await device.exchange.close()
        connection.close("done")
        await connection.closed()


async def report(device: Device, lender: Lender, size: int, folder: Path) -> None:
    source = (await device.exchange.lenders().sources(device.record.files[0]))[0]
    assert isinstance(source, DirectSource)
    await lender.ask("answering 0")
    speeds = [await fetched(device, source, size, lambda _span: lambda _data: None) for _ in range(3)]
    print(f"TLS, thrown away: {', '.join(f'{s:.0f}' for s in speeds)} MB/s")
    speeds = []
    for number in range(3):
        (folder / str(number)).mkdir()
        speeds.append(await into_file(device, source, size, folder / str(number)))
    print(f"TLS, into a file: {', '.join(f'{s:.0f}' for s in speeds)} MB/s")
    best: dict[str, float] = {}
    for _round in range(ROUNDS):
        await lender.ask("answering 1")
        alone = await hops(device)
        print(f"10 KB hops alone:     {_ends(alone)}", flush=True)
        _keep(best, "alone", alone)
        for name, answering in (("free", "0"), ("paced", "1")):
            times, words = await beside(device, source, lender, size, answering)
            print(f"  beside {name} weights: {words}", flush=True)
            _keep(best, name, times)
            await asyncio.sleep(2)
    print("best p99 of each: " + ", ".join(f"{name} {p99:.2f} ms" for name, p99 in best.items()))
    source.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=512)
    parser.add_argument("--lend", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL)
    if options.lend:
        asyncio.run(lend(options.lend))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options.mb << 20, Path(folder)))


if __name__ == "__main__":
    main()
