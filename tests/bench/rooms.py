"""Tokens a second of real rooms over slow networks: ``python -m tests.bench.rooms [--step 20] [--delay 0 5 20 50]``.

Every device is a process with real connections on 127.0.0.1, whose datagrams are delayed on their way out. The model
is the tests' toy whose every pass takes a fixed time in all, so that the network is what differs. With drafts, a
draft block guesses right at the given rate, and a pass over several columns takes as long as one over one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.cli.waiting import leave
from app.engine.types import ColumnClass, Floats
from app.prompt.chat import UserTurn
from app.room import intents as it
from app.room.ice import IceConfig
from app.room.meta import OURS, Meta
from app.room.outside import RoomPorts, room_transport
from app.room.room import Room
from app.room.signal_servers import SignalServer, parse_server
from app.room.state import Phase, RoomState
from app.room.transport import Transport, TransportConfig
from tests.links.shaper import Shape, shaped
from tests.room.loopback import offer_loopback, room_server
from tests.room.test_rooms import MOST, prompt
from tests.room.toy import LAYERS, TABLE, ToyCompute, greedy, one_device, open_language
from tests.room.world import EXACT

QUESTION = "Through the storm, and what was there?"
PLEDGES = {1: (4.0,), 2: (2.0, 3.0), 3: (1.0, 1.0, 2.0)}
LIMIT_S = 240.0


@dataclass
class TimedCompute(ToyCompute):
    """Every pass takes ``step`` seconds for the whole model, and this device's share of it for its layers."""

    step: float = 0.0

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        done = await super().hidden(states, position, kind, sequence)
        await asyncio.sleep(self.step * self._loaded().layers / LAYERS)
        return done


@dataclass(frozen=True)
class Setting:
    """``right`` is the share of drafts that are; None: no drafts."""

    devices: int
    delay: float
    loss: float
    step: float
    right: float | None
    stripes: int


def device(server: SignalServer, compute: ToyCompute, drafts: bool, stripes: int, gbps: float = 0.0) -> Room:
    config = TransportConfig((server,), IceConfig(stun=()), stripes)
    ports = RoomPorts(
        new_transport=lambda _signal, _identity: room_transport(Transport(config)),
        compute=compute,
        table=TABLE,
        open_language=open_language,
        choose=greedy,
        meta=Meta(ua="Device", webgpu=True, dspec=int(drafts), max_bind_mb=2048, native=OURS, gbps=gbps),
    )
    room = Room(ports, EXACT)
    room.start()
    return room


def guesses(room: Room, right: float) -> Callable[[int, int], list[int]]:
    """What the model will say, some of it wrong."""
    dice, ids = random.Random(3), prompt(UserTurn(QUESTION))
    known: list[int] = []

    def guess(position: int, count: int) -> list[int]:
        if not known:
            ends = sorted(d.layers[1] for d in room.state.devices if d.layers)
            known.extend([*ids, *one_device(ids, MOST + 20, ends[:-1])])
        return [token if dice.random() < right else 96 for token in known[position : position + count]]

    return guess


async def until(room: Room, true: Callable[[RoomState], bool]) -> None:
    """Waits for a state of the room; ends the run with the room's own words when it does not come."""
    came = asyncio.Event()
    unsubscribe = room.subscribe(lambda state: came.set() if true(state) else None)
    try:
        if not true(room.state):
            async with asyncio.timeout(LIMIT_S):
                await came.wait()
    except TimeoutError:
        raise SystemExit(f"did not happen: {room.state.phase} {room.state.trouble} {room.state.notices}") from None
    finally:
        unsubscribe()


async def answer(room: Room, setting: Setting) -> str:
    """What was measured, and what the room itself says."""
    rate = await words_a_second(room, "toy" if setting.right is None else "toy-hybrid")
    used = sum(d.layers is not None for d in room.state.devices)
    accepted = room.state.speed.drafts_accepted
    drafted = f", {accepted:.0%} of drafts right" if accepted else ""
    return f"{rate:7.1f} tok/s over {used} devices{drafted}"


async def words_a_second(room: Room, model: str) -> float:
    """Starts the model and asks it; between the first word and the last."""
    room.handle(it.ChooseModel(model))
    room.handle(it.Start())
    await until(room, lambda state: state.phase is Phase.ONLINE)
    room.handle(it.Ask(QUESTION))
    await until(room, lambda state: state.live is not None and bool(state.live.answer))
    began, had = time.perf_counter(), len(room.state.live.answer if room.state.live else "")
    await until(room, lambda state: bool(state.transcript) and state.live is None)
    item = room.state.transcript[-1]
    return (len(item.answer) - had) / (time.perf_counter() - began)


async def measure(setting: Setting) -> str:
    """The creator's side; the members are started as processes."""
    async with room_server() as server:
        compute = TimedCompute(step=setting.step)
        room = device(server, compute, setting.right is not None, setting.stripes)
        if setting.right is not None:
            compute.guess = guesses(room, setting.right)
        pledges = PLEDGES[setting.devices]
        room.handle(it.OpenRoom("otter", pledges[0]))
        await until(room, lambda state: state.invite is not None)
        assert room.state.invite is not None
        members = [await member(server, room.state.invite.link, n, gb, setting) for n, gb in enumerate(pledges[1:])]
        try:
            await until(room, lambda state: len(state.devices) == setting.devices)
            return await answer(room, setting)
        finally:
            await leave(room)
            await room.close()
            for process in members:
                await asyncio.wait_for(process.wait(), 20)


async def member(
    server: SignalServer, link: str, number: int, gb: float, setting: Setting
) -> asyncio.subprocess.Process:
    arguments = [
        "--member", link, "--server", server.label, "--name", f"heron{number}", "--gb", str(gb),
        "--delay", str(1000 * setting.delay), "--loss", str(setting.loss), "--step", str(1000 * setting.step),
        "--right", "-1" if setting.right is None else str(setting.right), "--stripes", str(setting.stripes),
    ]  # fmt: skip
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.bench.rooms", *arguments)


async def be_member(options: argparse.Namespace) -> None:
    server = parse_server(options.server)
    assert server is not None
    compute = TimedCompute(step=options.step / 1000)
    room = device(server, compute, options.right >= 0, options.stripes)
    room.handle(it.JoinRoom(options.member, options.name, options.gb))
    await until(room, lambda state: state.phase in (Phase.OVER, Phase.ERROR))
    await room.close()


async def table(options: argparse.Namespace, delays: Sequence[float]) -> None:
    print(f"toy model, {options.step} ms a pass in all, {options.stripes} connections a link, {MOST} tokens")
    for devices in options.devices:
        for right in (None, options.right):
            for delay in delays if devices > 1 else [0.0]:
                setting = Setting(devices, delay / 1000, options.loss, options.step / 1000, right, options.stripes)
                with shaped(Shape(delay=setting.delay, loss=setting.loss)):
                    said = await measure(setting)
                drafts = "plain " if right is None else "drafts"
                print(f"{devices} devices, {drafts}, {delay:4.0f} ms one way: {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=float, default=20.0, help="ms a pass of the whole model takes")
    parser.add_argument("--delay", type=float, nargs="*", default=[0, 5, 20, 50], help="ms one way")
    parser.add_argument("--loss", type=float, default=0.0, help="share of datagrams lost")
    parser.add_argument("--devices", type=int, nargs="*", default=[1, 2, 3], choices=PLEDGES)
    parser.add_argument("--right", type=float, default=0.8, help="share of right drafts")
    parser.add_argument("--stripes", type=int, default=4)
    for hidden in ("--member", "--server", "--name"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--gb", type=float, default=1.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    offer_loopback()
    if not options.member:
        asyncio.run(table(options, options.delay))
        return
    with shaped(Shape(delay=options.delay[0] / 1000, loss=options.loss), seed=2):
        asyncio.run(be_member(options))


if __name__ == "__main__":
    main()
