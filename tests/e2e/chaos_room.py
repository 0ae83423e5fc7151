"""One room under chaos: its devices, its questions, and what has to hold after every answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.chaos_device import Seen
from tests.e2e.chaos_process import ChaosFailed, Device, Mark, Program

CREATOR = "otter"
MEMBERS = ("heron", "finch", "wren")
LEAST, SCALED = 60.0, 240.0
"""Seconds the room has for anything, and those it has more of where its clock runs as fast as the machine's."""
MARKED_ANSWER = 3


@dataclass(frozen=True)
class Exchange:
    question: str
    answer: str


@dataclass
class Tally:
    """What happened in a room."""

    answers: int = 0
    restarts: int = 0
    redeals: int = 0
    redeals_inside: int = 0
    moves: int = 0


class Room:
    """``hosted``: the model runs with its creator, whoever lends more; else a member lends most."""

    def __init__(self, program: Program, home: Path, members: int, *, hosted: bool, draw: random.Random) -> None:
        self.tally = Tally()
        self.draw = draw
        self.scale = program.time_scale
        self.patience = LEAST + SCALED * program.time_scale
        self.hosted = hosted
        self.rates: list[float] = []
        self.tokens = 0
        self._program, self._home = program, home
        self._link = ""
        self._made = 0
        self.creator = self._device(CREATOR, fixed_host=hosted)
        self.members = [self._device(name) for name in MEMBERS[:members]]
        self.creator.on_seen = self._watched

    def _device(self, name: str, *, fixed_host: bool = False) -> Device:
        return Device(name, self._program, self._home / name, fixed_host=fixed_host)

    @property
    def devices(self) -> list[Device]:
        return [self.creator, *self.members]

    @property
    def holders(self) -> list[Device]:
        """Members that hold layers, or all while that is not known."""
        held = [member for member in self.members if member.name in self.creator.seen.holders]
        return held or self.members

    def lends(self, device: Device) -> float:
        most = device is self.members[0] if not self.hosted and self.members else device is self.creator
        return 1.5 if most else 1.0

    def _watched(self, before: Seen, now: Seen) -> None:
        if now.phase == "redealing" and before.phase != "redealing":
            self.tally.redeals += 1
            self.tally.redeals_inside += now.live
        if before.host and now.host and now.host != before.host:
            self.tally.moves += 1

    # -- coming and going -----------------------------------------------------------------------------------

    async def open(self) -> None:
        await asyncio.gather(*(device.start() for device in self.devices))
        self.creator.tell("open", {"name": self.creator.name, "gb": self.lends(self.creator)})
        self._link = (await self.creator.until(lambda s: bool(s.link), self.patience, "the room")).link
        for member in self.members:
            self.join(member)
        here = len(self.devices)
        for device in self.devices:
            await device.until(lambda s: s.people == here and s.can_start, self.patience, "everybody")
        self.draw.choice(self.devices).tell("start")
        await self.whole()

    def join(self, member: Device) -> None:
        member.tell("join", {"link": self._link, "name": member.name, "gb": self.lends(member)})

    async def add(self, name: str) -> Device:
        """A newcomer; the others go on meanwhile."""
        self._made += 1
        newcomer = self._device(f"{name}{self._made}")
        await newcomer.start()
        self.members.append(newcomer)
        self.join(newcomer)
        return newcomer

    async def restart(self, device: Device, *, reopen: bool = True) -> None:
        """Its program begins anew and goes back: by what it kept, or as anybody with the link would."""
        await device.start()
        self.tally.restarts += 1
        if reopen or device is self.creator:
            device.tell("reopen")
        else:
            self.join(device)

    async def whole(self) -> None:
        """Until the model runs on every screen."""
        for device in self.devices:
            await device.until(lambda s: s.phase in {"online", "answering"}, self.patience, "the model")

    # -- questions ------------------------------------------------------------------------------------------

    async def ask(self, asker: Device, question: str) -> None:
        """Asked again only after it was refused."""
        began = asyncio.get_running_loop().time()
        while asker.seen.asked != question:
            await asker.until(lambda s: s.can_ask, self.patience, "a room that takes questions")
            refused = asker.seen.refused
            asker.tell("ask", question)
            await asker.until(
                lambda s, n=refused: s.asked == question or s.refused > n, self.patience, f"{question!r}, asked here"
            )
            if asyncio.get_running_loop().time() - began > self.patience:
                raise ChaosFailed(f"{asker.name}: nobody took {question!r}")

    async def written(self, letters: int, finished: int) -> None:
        """Until that much of the running answer is seen, or it is over."""
        await self.creator.until(
            lambda s: s.written >= letters or s.finished > finished, self.patience, "words of the answer"
        )

    async def answered(self, exchanges: Sequence[Exchange]) -> None:
        """Every screen shows every question once, in order, with the answer of an undisturbed device."""
        for device in self.devices:
            await device.until(
                lambda s: s.phase == "online" and not s.live and s.finished >= len(exchanges),
                self.patience,
                f"the end of answer {len(exchanges)}",
            )
        shown = [await device.ask_for("transcript") for device in self.devices]
        for device, transcript in zip(self.devices, shown, strict=True):
            _check(device, transcript, exchanges)
            await self._mark(device)
        self.tally.answers += 1
        self._note_speed(shown[0][-1]["stats"])

    async def _mark(self, device: Device) -> None:
        device.answers += 1
        if device.answers >= MARKED_ANSWER:
            hosts = device.seen.host == device.name
            device.marks.append(Mark(device.seen.layers, hosts, await device.ask_for("memory")))

    def _note_speed(self, stats: str) -> None:
        """From the line under an answer: "120 tok · 14.2 tok/s · ..."."""
        words = stats.split(" · ")
        self.tokens += int(words[0].split()[0])
        self.rates.append(float(words[1].split()[0]))

    # -- the end --------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Everybody ends by itself."""
        for device in self.devices:
            device.tell("close")
        for device in self.devices:
            await device.ended_well()

    async def abandon(self) -> None:
        for device in self.devices:
            await device.stop_for_good()


def _check(device: Device, transcript: list[dict[str, Any]], exchanges: Sequence[Exchange]) -> None:
    shown = [Exchange(item["question"], item["answer"]) for item in transcript]
    for number, (got, expected) in enumerate(zip(shown, exchanges, strict=False), 1):
        if got != expected:
            stats = transcript[number - 1]["stats"]
            raise ChaosFailed(f"{device.name}, exchange {number}: shows {got} ({stats}), not {expected}")
    if len(shown) != len(exchanges):
        raise ChaosFailed(f"{device.name} shows {len(shown)} exchanges, not {len(exchanges)}")
    failed = [item["stats"] for item in transcript if item["failed"]]
    if failed:
        raise ChaosFailed(f"{device.name}: an answer failed: {failed}")
