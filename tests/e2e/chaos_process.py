"""A chaos device as its parent holds it: what it last said, and what may be done to its process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.chaos_device import Seen

STARTING = 60.0
ENDING = 30.0
DUMPING = 1.0


class ChaosFailed(Exception):
    """Something the room promised did not hold, or did not happen in time."""


@dataclass(frozen=True)
class Program:
    """How devices of a run are started."""

    signal: str
    model: Path
    time_scale: float
    ending: int

    def arguments(self, seed: int, *, fixed_host: bool) -> list[str]:
        words = ["--signal", self.signal, "--model", str(self.model), "--seed", str(seed)]
        words += ["--time-scale", str(self.time_scale), "--ending", str(self.ending)]
        return [*words, "--fixed-host"] if fixed_host else words


@dataclass(frozen=True)
class Mark:
    """Resident memory of a process that holds these layers, and runs the model or does not."""

    layers: tuple[int, int] | None
    hosts: bool
    mb: float

    def like(self, other: Mark) -> bool:
        return (self.layers, self.hosts) == (other.layers, other.hosts)


class Device:
    """One computer: its process may end and begin anew, its home stays."""

    def __init__(self, name: str, program: Program, home: Path, *, fixed_host: bool = False) -> None:
        self.name = name
        self.seen = Seen()
        self.on_seen: Callable[[Seen, Seen], None] = lambda _before, _now: None
        self.marks: list[Mark] = []
        """After answers since the process began, the third one first."""
        self.answers = 0
        self.started_in = 0.0
        """Seconds its program took to be ready, the last time."""
        self._program, self._home, self._fixed_host = program, home, fixed_host
        self._process: asyncio.subprocess.Process | None = None
        self._told: dict[str, asyncio.Future[Any]] = {}
        self._changed = asyncio.Event()
        self._starts = 0
        self._reading: asyncio.Task[None] | None = None

    @property
    def log(self) -> Path:
        return self._home / "log"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        self._starts += 1
        self.seen, self.answers, self.marks = Seen(), 0, []
        ready = self._expect("ready")
        environment = {
            **os.environ,
            "POOLED_HOME": str(self._home),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.e2e.chaos_device",
                *self._program.arguments(self._starts, fixed_host=self._fixed_host),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, env=environment,
            )  # fmt: skip
        self._reading = asyncio.create_task(self._read(self._process), name=f"reads {self.name}")
        await self._within(ready, STARTING, "the start of its program")
        self.started_in = time.monotonic() - began

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        async for line in process.stdout:
            said = json.loads(line)
            if said["kind"] == "seen":
                before, self.seen = self.seen, msgspec.convert(said["value"], Seen)
                self.on_seen(before, self.seen)
                self._changed.set()
            elif said["kind"] in self._told:
                self._told.pop(said["kind"]).set_result(said["value"])

    # -- orders and what comes of them ----------------------------------------------------------------------

    def tell(self, word: str, value: object = None) -> None:
        """Nothing is said to a process that has ended."""
        if self.running and self._process and self._process.stdin:
            self._process.stdin.write(json.dumps({word: value}).encode() + b"\n")

    async def ask_for(self, word: str, seconds: float = ENDING) -> Any:
        answer = self._expect(word)
        self.tell(word)
        return await self._within(answer, seconds, word)

    def _expect(self, word: str) -> asyncio.Future[Any]:
        expected = self._told[word] = asyncio.get_running_loop().create_future()
        return expected

    async def _within(self, expected: asyncio.Future[Any], seconds: float, what: str) -> Any:
        try:
            return await asyncio.wait_for(expected, seconds)
        except TimeoutError as error:
            raise ChaosFailed(f"{self.name}: waited {seconds:.0f} s for {what}") from error

    async def until(self, true: Callable[[Seen], bool], seconds: float, what: str) -> Seen:
        """Waits for something the device sees."""
        try:
            async with asyncio.timeout(seconds):
                while not true(self.seen):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise ChaosFailed(f"{self.name}: waited {seconds:.0f} s for {what}") from error
        return self.seen

    # -- what befalls it ------------------------------------------------------------------------------------

    def signal(self, number: signal.Signals) -> None:
        if self.running and self._process:
            self._process.send_signal(number)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> int:
        """Its exit code, once its process is over and all it said was read."""
        assert self._process
        assert self._reading
        try:
            code = await asyncio.wait_for(self._process.wait(), ENDING)
        except TimeoutError as error:
            raise ChaosFailed(f"{self.name}: its process does not end") from error
        await self._reading
        return code

    async def dump(self) -> str:
        """The stacks of its threads as the log has them, with what was logged last."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGUSR1)
        await asyncio.sleep(DUMPING)
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- {self.name}: {self.seen}", *lines[-60:]])

    async def ended_well(self) -> None:
        code = await self.ended()
        if code:
            raise ChaosFailed(f"{self.name}: its program ended with {code}")

    @property
    def growth(self) -> tuple[float, float] | None:
        """MB when it first did what it does at the end, from its third answer on, and MB at the end."""
        last = self.marks[-1] if self.marks else None
        first = next((mark for mark in self.marks if last and mark.like(last)), None)
        return (first.mb, last.mb) if first and last and first is not last else None

    async def stop_for_good(self) -> None:
        if self.running:
            await self.kill()
