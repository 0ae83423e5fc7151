"""Predicted and measured words a second of real rooms: ``python -m tests.bench.predict``.

Every device is a process with real connections on 127.0.0.1, whose datagrams are delayed on their way out. The model
is the tests' toy, whose layers take a fixed time on each device; a device tells the copy speed at which a GPU would
take that long. Predicted twice: before anything ran, and after the answer, from what was measured then.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from app.cli.waiting import leave
from app.room import intents as it
from app.room.predict import EFFICIENCY, LAUNCH_MS, layer_reads
from app.room.room import Room
from app.room.signal_servers import SignalServer, parse_server
from app.room.state import ModelRow, Phase, RoomState
from tests.bench.rooms import TimedCompute, device, until, words_a_second
from tests.links.shaper import Shape, shaped
from tests.room.loopback import offer_loopback, room_server
from tests.room.toy import LAYERS, RECORD

PINGS_S = 8.0
STRIPES = 4


@dataclass(frozen=True)
class Lender:
    """A device: GB lent, ms for all layers if it had them, ms one way from it to any other."""

    gb: float
    step: float
    delay: float = 0.0

    @property
    def gbps(self) -> float:
        """Of the GPU that this device plays."""
        return layer_reads(RECORD) / (EFFICIENCY * 1e6 * (self.step / LAYERS - LAUNCH_MS))


ROOMS: dict[str, Sequence[Lender]] = {
    "one device": (Lender(4, 60),),
    "two of one kind": (Lender(2, 60), Lender(3, 60)),
    "two, 20 ms apart": (Lender(2, 60, 10), Lender(3, 60, 10)),
    "a fast one beside a slow one": (Lender(2, 30), Lender(3, 150)),
    "three of one kind": (Lender(1, 60), Lender(1, 60), Lender(2, 60)),
    "three, 40 ms apart": (Lender(1, 60, 20), Lender(1, 60, 20), Lender(2, 60, 20)),
    "a slow one, and a fast one far away": (Lender(4, 60, 0), Lender(4, 30, 80)),
    "a slow one, a near one and one far away": (Lender(1, 60), Lender(3, 60, 1), Lender(3, 30, 80)),
}


def toy(state: RoomState) -> ModelRow | None:
    return next((row for row in state.rows if row.key == RECORD.key), None)


async def measure(lenders: Sequence[Lender]) -> str:
    async with room_server() as server:
        room = seated(server, lenders[0])
        room.handle(it.OpenRoom("otter", lenders[0].gb))
        await until(room, lambda state: state.invite is not None)
        assert room.state.invite is not None
        members = [await member(server, room.state.invite.link, n, each) for n, each in enumerate(lenders[1:])]
        try:
            await until(room, lambda state: len(state.devices) == len(lenders))
            await asyncio.sleep(PINGS_S)
            return await compared(room)
        finally:
            await leave(room)
            await room.close()
            for process in members:
                await asyncio.wait_for(process.wait(), 20)


def seated(server: SignalServer, lender: Lender) -> Room:
    return device(server, TimedCompute(step=lender.step / 1000), False, STRIPES, lender.gbps)


async def compared(room: Room) -> str:
    before = toy(room.state)
    measured = await words_a_second(room, RECORD.key)
    used = sum(each.layers is not None for each in room.state.devices)
    room.handle(it.StopStart())
    await until(room, lambda state: state.phase is Phase.ROOM)
    after = toy(room.state)
    told = [(row.predicted or 0.0) if row else 0.0 for row in (before, after)]
    shown = " ".join(f"{rate:6.2f} ({rate / measured - 1:+4.0%})" for rate in told)
    return f"predicted {shown}, measured {measured:6.2f} tok/s on {used}; {before.speed if before else ''}"


async def member(server: SignalServer, link: str, number: int, lender: Lender) -> asyncio.subprocess.Process:
    arguments = [
        "--member", link, "--server", server.label, "--name", f"heron{number}", "--gb", str(lender.gb),
        "--delay", str(lender.delay), "--step", str(lender.step),
    ]  # fmt: skip
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.bench.predict", *arguments)


async def be_member(options: argparse.Namespace) -> None:
    server = parse_server(options.server)
    assert server is not None
    room = seated(server, Lender(options.gb, options.step))
    room.handle(it.JoinRoom(options.member, options.name, options.gb))
    await until(room, lambda state: state.phase in (Phase.OVER, Phase.ERROR))
    await room.close()


async def table(names: Sequence[str]) -> None:
    for name in names or ROOMS:
        with shaped(Shape(delay=ROOMS[name][0].delay / 1000)):
            print(f"{name}: {await measure(ROOMS[name])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], help="which of the rooms; all when none is named")
    for hidden in ("--member", "--server", "--name"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    for hidden in ("--gb", "--step", "--delay"):
        parser.add_argument(hidden, type=float, default=1.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    offer_loopback()
    if not options.member:
        asyncio.run(table(options.rooms))
        return
    with shaped(Shape(delay=options.delay / 1000), seed=2):
        asyncio.run(be_member(options))


if __name__ == "__main__":
    main()
