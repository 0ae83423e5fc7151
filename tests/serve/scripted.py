"""A room that answers from a script, a clock moved by hand, and ids that count up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.clock import VirtualClock
from app.core.errors import RoomError
from app.prompt.ask import Ask
from app.prompt.pieces import CallArguments, CallBegun, CallEnded, Piece, Reasoning, Words
from app.room.api.events import AskEvent, Ended, Queued, Reason, Refused, ServedModel, Spoken, Started, Usage
from app.serve.config import ServeConfig
from app.serve.server import ApiServer
from app.serve.status import Phase, ServeStatus
from app.serve.writing import Naming

MODEL = ServedModel("qwen3-1.7b", "Qwen3 1.7B", 4_096)
STARTED = Started("qwen3-1.7b", 20, 4_096)
USAGE = Usage(prompt=20, reused=12, output=7, reasoning=2)
ENDED = Ended(Reason.STOP, USAGE)


def spoken(*pieces: Piece) -> Spoken:
    return Spoken(pieces)


def words(*texts: str) -> list[AskEvent]:
    return [spoken(Words(text)) for text in texts]


def reasoning(*texts: str) -> list[AskEvent]:
    return [spoken(Reasoning(text)) for text in texts]


def call(index: int, name: str, *fragments: str, ended: bool = True) -> list[AskEvent]:
    events: list[AskEvent] = [spoken(CallBegun(index, name))]
    events += [spoken(CallArguments(index, fragment)) for fragment in fragments]
    return [*events, spoken(CallEnded(index))] if ended else events


def answer(*parts: Iterable[AskEvent], ended: AskEvent = ENDED) -> list[AskEvent]:
    return [STARTED, *(event for part in parts for event in part), ended]


HELLO = answer(words("Hel", "lo"))


@dataclass
class Pause:
    """Something in a script that waits until the test says so."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)


Step = AskEvent | Pause


class ScriptedStream:
    def __init__(self, steps: Sequence[Step], closed: Callable[[], None]) -> None:
        self._steps = steps
        self._closed = closed
        self.fault: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[AskEvent]:
        for step in self._steps:
            if isinstance(step, Pause):
                step.reached.set()
                await step.go.wait()
            else:
                yield step
        if self.fault is not None:
            raise self.fault

    def close(self) -> None:
        self._closed()


class ScriptedAnswers:
    """Answers ask after ask with ``scripts``; the last one again and again."""

    def __init__(self, *scripts: Sequence[Step], model: ServedModel | None = MODEL) -> None:
        self.model = model
        self.room = "4TKG9P"
        self.asks: list[Ask] = []
        self.open = 0
        self.most_open = 0
        self.freed = asyncio.Event()
        self._scripts = list(scripts) or [HELLO]

    @property
    def asked(self) -> Ask:
        return self.asks[-1]

    def ask(self, ask: Ask) -> ScriptedStream:
        self.asks.append(ask)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        return ScriptedStream(script, self._closed)

    async def count(self, ask: Ask) -> int:
        if self.model is None:
            raise RoomError("No model is running.")
        return sum(len(getattr(message, "text", "").split()) for message in ask.messages) + len(ask.system.split())

    def _closed(self) -> None:
        self.open -= 1
        self.freed.set()


class HandTiming(VirtualClock):
    """``pass_time`` waits until ``sleepers`` sleep, and wakes those that slept long enough."""

    def __init__(self) -> None:
        super().__init__(1_000.0)
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self.now() + seconds, woken))
        self._asleep.set()
        await woken.wait()

    async def pass_time(self, seconds: float, sleepers: int = 1) -> None:
        while len(self._sleepers) < sleepers:
            self._asleep.clear()
            await self._asleep.wait()
        self.advance(seconds)
        due = [each for each in self._sleepers if each[0] <= self.now()]
        self._sleepers = [each for each in self._sleepers if each[0] > self.now()]
        for _, woken in due:
            woken.set()


def counting(model: str) -> Naming:
    """Ids 1, 2, 3 and one moment."""
    numbers = iter(range(1, 1_000))
    return Naming(model, lambda: f"{next(numbers):04d}", lambda: 1_700_000_000)


class Serving:
    """``async with Serving(answers) as served``: a server on a free port of this computer."""

    def __init__(self, answers: ScriptedAnswers | None = None, config: ServeConfig | None = None, **more: Any) -> None:
        self.answers = answers or ScriptedAnswers()
        self.server = ApiServer(self.answers, config or ServeConfig(port=0), **more)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    async def __aenter__(self) -> Serving:
        await self.server.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.server.stop()


class Watch:
    """The latest status, and waiting for one."""

    def __init__(self) -> None:
        self.status = ServeStatus()
        self._changed = asyncio.Event()

    def __call__(self, status: ServeStatus) -> None:
        self.status = status
        self._changed.set()

    async def waiting(self, count: int) -> None:
        while self.status.phase is not Phase.ANSWERING or self.status.waiting != count:
            self._changed.clear()
            await self._changed.wait()


def refused(code: Any, why: str = "because", **more: int) -> list[AskEvent]:
    return [Queued(1), Refused(code, why, **more)]
