"""Rooms of processes under kills, stops, bad networks and restarts: whatever happens, every answer is the same.

    python -m tests.e2e.chaos --minutes 30 --seed 1

A seed gives the rooms, their questions and what befalls whom. Each screen must show every question once with the
words of one undisturbed device; every wait is bounded; no process may grow. Exit code 0 only if all of it holds.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import median

from app.room.member_seat import KNOCK_SECONDS
from tests.e2e.chaos_faults import Fault, befall
from tests.e2e.chaos_process import ChaosFailed, Mark, Program
from tests.e2e.chaos_reference import questions, undisturbed
from tests.e2e.chaos_room import Exchange, Room, Tally
from tests.room.loopback import room_server
from tests.shared import shared_root

NANO = "models/nano-qwen35moe-Q8_0.gguf"
TINY = Path(__file__).parents[1] / "data" / "golden" / "tiny-qwen35.gguf"
EACH_AT_LEAST = 2
MOST_GROWTH = 1.05
QUIET_FIRST = 1
MOSTLY_INSIDE = 0.75
SIZES = (2, 2, 3, 3, 1, 1)
"""Members of the rooms beside their creator, in turn."""
SERVER_FORGETS = 5.0


@dataclass(frozen=True)
class Options:
    minutes: float = 3.0
    seed: int = 1
    time_scale: float = 1.0
    questions: int = 16
    ending: int = 48
    model: Path = TINY


@dataclass
class Outcome:
    """All rooms together. ``growth`` holds (device, MB after its third answer, MB at the end)."""

    faults: Counter[Fault] = field(default_factory=Counter[Fault])
    inside: Counter[Fault] = field(default_factory=Counter[Fault])
    tally: Tally = field(default_factory=Tally)
    rooms: int = 0
    tokens: int = 0
    rates: list[float] = field(default_factory=list[float])
    growth: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])
    marks: dict[str, list[Mark]] = field(default_factory=dict[str, list[Mark]])
    seconds: float = 0.0

    def add(self, room: Room) -> None:
        self.rooms += 1
        for each in fields(Tally):
            setattr(self.tally, each.name, getattr(self.tally, each.name) + getattr(room.tally, each.name))
        self.tokens += room.tokens
        self.rates += room.rates
        self.growth += [(f"{d.name}, room {self.rooms}", *d.growth) for d in room.devices if d.growth]
        self.marks |= {f"{d.name}, room {self.rooms}": d.marks for d in room.devices}

    def complaints(self) -> list[str]:
        """What was to happen and did not, or the other way round."""
        rare = [f"only {self.faults[f]} times: {f.value}" for f in Fault if self.faults[f] < EACH_AT_LEAST]
        grown = [
            f"{name} grew from {first:.0f} to {last:.0f} MB: {self.marks[name]}"
            for name, first, last in self.growth
            if last > MOST_GROWTH * first
        ]
        return rare + grown + ([] if self.tally.redeals_inside else ["no deal fell inside an answer"])

    def table(self) -> str:
        kinds = [f"| {f.value} | {self.faults[f]} | {self.inside[f]} |" for f in Fault]
        worst = max(self.growth, key=lambda g: g[2] / g[1], default=("nobody", 1.0, 1.0))
        return "\n".join([
            "| what happened | times | inside an answer |", "| --- | --- | --- |", *kinds, "",
            f"{self.rooms} rooms in {self.seconds:.0f} s; {self.tally.answers} answers, {self.tokens} tokens, "
            f"{median(self.rates or [0.0]):.1f} tok/s (median of the answers, faults included)",
            f"{self.tally.restarts} restarts; {self.tally.redeals} re-deals, {self.tally.redeals_inside} of them "
            f"inside an answer; the model moved {self.tally.moves} times",
            f"most growth of {len(self.growth)} processes: {worst[0]}, {worst[1]:.0f} to {worst[2]:.0f} MB",
        ])  # fmt: skip


def schedule(count: int, draw: random.Random) -> list[Fault | None]:
    """One fault a question in random order, each kind before any comes again; the first questions are quiet."""
    kinds: list[Fault] = []
    while len(kinds) < count - QUIET_FIRST:
        kinds += draw.sample(list(Fault), len(Fault))
    return [*([None] * QUIET_FIRST), *kinds][:count]


async def chaos(options: Options) -> Outcome:
    """Rooms two by two until the time is over and every kind of fault has happened often enough."""
    outcome, began, draw = Outcome(), time.monotonic(), random.Random(options.seed)
    asked = questions(options.questions, draw)
    async with room_server(SERVER_FORGETS) as server:
        program = Program(server.label, options.model.resolve(), options.time_scale, options.ending)
        with tempfile.TemporaryDirectory(prefix="chaos") as homes:
            expected, start = await undisturbed(program, Path(homes) / "undisturbed", asked)
            program = replace(program, time_scale=bearable(options.time_scale, start))
            for number in itertools.count(0, 2):
                rooms = [_room(n, program, Path(homes) / str(n), draw) for n in (number, number + 1)]
                faults = [schedule(len(asked), draw) for _ in rooms]
                await _both(rooms, expected, faults, outcome)
                outcome.seconds = time.monotonic() - began
                if outcome.seconds >= 60 * options.minutes:
                    return outcome
    return outcome


def bearable(scale: float, start: float) -> float:
    """So slow a clock that a program starts, in ``start`` seconds, within a quarter of the time it is waited for."""
    return min(1.0, max(scale, 4 * start / KNOCK_SECONDS))


async def _both(
    rooms: Sequence[Room], expected: Sequence[Exchange], faults: Sequence[Sequence[Fault | None]], outcome: Outcome
) -> None:
    """At the same time: most of it is waiting. The first that fails ends the other."""
    try:
        async with asyncio.TaskGroup() as group:
            for room, befalls in zip(rooms, faults, strict=True):
                group.create_task(live(room, expected, befalls, outcome))
    except* ChaosFailed as failed:
        raise failed.exceptions[0] from None


def _room(number: int, program: Program, home: Path, draw: random.Random) -> Room:
    """The model runs on the creator and on a member in turn."""
    members, seed = SIZES[number % len(SIZES)], draw.random()
    return Room(program, home, members, hosted=number % 2 == 0, draw=random.Random(seed))


async def live(room: Room, expected: Sequence[Exchange], faults: Sequence[Fault | None], outcome: Outcome) -> None:
    try:
        await room.open()
        for number, fault in enumerate(faults):
            await one_answer(room, expected[: number + 1], fault, outcome)
        outcome.add(room)
        await room.close()
    except ChaosFailed as error:
        dumps = [await device.dump() for device in room.devices]
        raise ChaosFailed("\n".join([str(error), *dumps])) from error
    finally:
        await room.abandon()


async def one_answer(room: Room, exchanges: Sequence[Exchange], fault: Fault | None, outcome: Outcome) -> None:
    began, asker = time.monotonic(), room.draw.choice(room.devices)
    inside = room.draw.random() < MOSTLY_INSIDE or fault is Fault.LEAVE_JOIN
    letters = round(room.draw.uniform(0.1, 0.5) * len(exchanges[-1].answer))
    if fault is not None and not inside:
        await _befall(fault, room, outcome)
        await room.whole()
        asker = asker if asker.running else room.creator
    await room.ask(asker, exchanges[-1].question)
    if fault is not None and inside:
        await room.written(letters, len(exchanges) - 1)
        outcome.inside[fault] += room.creator.seen.live
        await _befall(fault, room, outcome)
    await room.answered(exchanges)
    print(
        f"{time.monotonic() - began:6.1f} s  {asker.name} asks, {len(room.devices)} devices, "
        f"{fault.value if fault else 'nothing'} {'inside' if fault and inside else ''}",
        flush=True,
    )


async def _befall(fault: Fault, room: Room, outcome: Outcome) -> None:
    await befall(fault, room)
    outcome.faults[fault] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time-scale", type=float, default=1.0, help="seconds here a second of the rooms' clocks")
    parser.add_argument("--questions", type=int, default=16, help="questions a room")
    parser.add_argument("--ending", type=int, default=48, help="answers end at positions that this divides")
    parser.add_argument(
        "--model", type=Path, help="a model file; else the nano mixture of the shared folder, or a tiny"
    )
    given = parser.parse_args()
    nano = shared_root() / NANO
    model: Path = given.model or (nano if nano.exists() else TINY)
    options = Options(given.minutes, given.seed, given.time_scale, given.questions, given.ending, model)
    try:
        outcome = asyncio.run(chaos(options))
    except ChaosFailed as error:
        print(f"chaos won: {error}", file=sys.stderr)
        return 1
    print(outcome.table())
    for complaint in outcome.complaints():
        print(f"chaos won: {complaint}", file=sys.stderr)
    return bool(outcome.complaints())


if __name__ == "__main__":
    raise SystemExit(main())
