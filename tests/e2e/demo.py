"""The main job without a screen: two processes, one model, three questions, every token checked.

A creator opens a room, a second process knocks with the code, is let in, gets a share of the layers by
memory, and both answer over real WebRTC links. Then one device that rounds at the same cut computes the
whole conversation again and every token is compared. Exit code 0 only if all of it holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.models.fetch import fetch_model
from app.models.table import builtin_table
from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.assembly import Application, Network, assemble
from app.room.ice import IceConfig
from app.room.planner import SplitMode
from app.room.segments import Fed
from app.room.settings import RoomSettings
from app.room.signal_servers import SignalServer
from app.room.state import Exchange, Phase, RoomState
from tests.e2e.one_device import Differs, compare
from tests.room.loopback import offer_loopback, room_server

MODEL = "smollm2-135m-q4_1"
QUESTIONS = (
    "Write a short story about a lighthouse keeper and a storm.",
    "Now tell it again from the point of view of the lighthouse itself.",
    "Which of the two stories do you like better, and why?",
)
FEWEST_LAYERS = 10
FEWEST_TOKENS = 64
PATIENCE = 600.0


class DemoFailed(Exception):
    """What the demo promised did not hold."""


@dataclass(frozen=True)
class Answer:
    """One exchange with its figures."""

    exchange: Exchange
    seconds: float
    tokens: int
    reused: int
    tokens_per_second: float
    ms_per_lap: float
    wire_ms: float


async def until(application: Application, true: Callable[[RoomState], bool], what: str) -> RoomState:
    """Waits for a state of the room; DemoFailed when the room says something went wrong first."""
    began = time.monotonic()
    while not true(application.room.state):
        state = application.room.state
        if state.phase in (Phase.ERROR, Phase.OVER) or time.monotonic() - began > PATIENCE:
            raise DemoFailed(f"waiting for {what}: {state.phase.value} {state.trouble} {state.remedy}")
        await asyncio.sleep(0.01)
    return application.room.state


class Second:
    """The other process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.digits = ""
        self.shown = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name="second device")

    async def _read(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            self.digits = json.loads(line)["digits"] or self.digits
            if self.digits:
                self.shown.set()

    async def close(self) -> int:
        try:
            code = await asyncio.wait_for(self.process.wait(), 10)
        except TimeoutError:
            self.process.kill()
            code = await self.process.wait()
        await self._reader
        return code


@asynccontextmanager
async def second_device(server: SignalServer, code: str, gb: float, stripes: int, *more: str) -> AsyncIterator[Second]:
    arguments = ["--signal", server.label, "--code", code, "--gb", str(gb), "--stripes", str(stripes), *more]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.e2e.device", *arguments, stdout=asyncio.subprocess.PIPE
    )
    second = Second(process)
    try:
        yield second
    finally:
        if process.returncode is None and sys.exc_info()[0] is not None:
            process.kill()
        await second.close()


async def open_room(application: Application, gb: float) -> str:
    application.room.handle(it.OpenRoom("otter", gb))
    state = await until(application, lambda s: s.invite is not None, "the room")
    print(f"room {state.code}")
    return state.code


async def let_in(application: Application, second: Second, people: int = 2) -> None:
    state = await until(application, lambda s: bool(s.waiting), "a knock")
    request = state.waiting[0]
    await second.shown.wait()
    print(f"{request.name} knocks with {request.digits}, shows {second.digits}: allowed")
    if request.digits != second.digits:
        raise DemoFailed("the six digits differ")
    application.room.handle(it.Allow(request.id))
    await until(application, lambda s: len(s.people) == people, "another device")


async def start_model(
    application: Application, model: str = MODEL, devices: int = 2, fewest: int = FEWEST_LAYERS
) -> list[tuple[int, int]]:
    """The layer ranges, from 1."""
    application.room.handle(it.ChooseModel(model))
    application.room.handle(it.Start())
    state = await until(application, lambda s: s.phase is Phase.ONLINE, "the model")
    ranges = [d.layers for d in state.devices if d.layers]
    for device in state.devices:
        print(f"{device.name}: layers {device.layers[0]}-{device.layers[1]}" if device.layers else device.name)
    if len(ranges) != devices or min(hi - lo + 1 for lo, hi in ranges) < fewest:
        raise DemoFailed(f"each device was to hold at least {fewest} layers: {ranges}")
    return sorted(ranges)


async def ask(application: Application, question: str) -> Answer:
    """One question; the answer is stopped after it is long enough, as a person would."""
    count, began = len(application.room.state.transcript), time.monotonic()
    application.room.handle(it.Ask(question))
    await until(application, lambda s: len(s.transcript) > count, "the answer")
    state = await until(application, lambda s: s.live is None or s.speed.tokens >= FEWEST_TOKENS + 4, "tokens")
    if state.live is not None:
        application.room.handle(it.Stop())
    state = await until(application, lambda s: s.phase is Phase.ONLINE and s.live is None, "the end")
    speed = state.speed
    return Answer(
        state.transcript[-1], time.monotonic() - began, speed.tokens, speed.reused,
        speed.tokens_per_second, speed.ms_per_word, speed.wire_ms,
    )  # fmt: skip


def report(number: int, answer: Answer) -> None:
    print(f"\n[{number}] {answer.exchange.question}\n{answer.exchange.answer.strip()}")
    print(
        f"    {answer.tokens} tokens, {answer.tokens_per_second:.1f} tok/s, {answer.ms_per_lap:.0f} ms a lap, "
        f"{answer.wire_ms:.1f} ms on the wire, {answer.reused} tokens reused, {answer.seconds:.0f} s in all"
    )


async def demo(gb: float, stripes: int) -> None:
    record = builtin_table().get(MODEL)
    path = await fetch_model(record, lambda _transfer: None)
    offer_loopback()
    style = Style(wording=Wording.EXACT, length=Length.SHORT)
    settings = RoomSettings(split=SplitMode.MEMORY, style=style)
    async with room_server(5.0) as server:
        network = Network((server.label,), IceConfig(stun=()), stripes, cloud=False)
        application = await assemble(network, settings, fixed_host=True)
        try:
            await converse(application, server, path, gb, stripes)
        finally:
            await application.close()


async def converse(application: Application, server: SignalServer, path: Path, gb: float, stripes: int) -> None:
    code = await open_room(application, gb)
    async with second_device(server, code, gb, stripes) as second:
        await let_in(application, second)
        ranges = await start_model(application)
        answers = [await ask(application, question) for question in QUESTIONS]
        for number, answer in enumerate(answers, 1):
            report(number, answer)
        fed = cached_of(application)
        context = application.room.state.speed.context_max
    short = [a.tokens for a in answers if a.tokens < FEWEST_TOKENS]
    if short:
        raise DemoFailed(f"answers of {short} tokens are shorter than {FEWEST_TOKENS}")
    if answers[2].reused <= answers[1].reused or answers[2].reused < 2 * FEWEST_TOKENS:
        raise DemoFailed(f"the third question reused {answers[2].reused} tokens, not the first two")
    cuts = [hi for _, hi in ranges]
    await application.close()
    compared, speed = await asyncio.to_thread(compare, fed, path, cuts, context)
    print(f"\n{compared} tokens equal one device rounding at layer {cuts[0]}; that device alone: {speed:.1f} tok/s")
    if compared < 3 * FEWEST_TOKENS - 3:
        raise DemoFailed(f"only {compared} tokens could be compared")


def cached_of(application: Application) -> Fed:
    """What the model host says all caches hold."""
    seat = application.room._seat  # pyright: ignore[reportPrivateUsage]
    return seat._creator.side.host.talk.cached  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=1.0, help="memory each device lends")
    parser.add_argument("--stripes", type=int, default=1, help="connections a link has")
    parser.add_argument("--model", choices=["nano"], help="a hybrid with drafts, over two and three devices")
    options = parser.parse_args()
    if options.model:
        from tests.e2e import demo_hybrid

        return demo_hybrid.main(options.gb, options.stripes)
    try:
        asyncio.run(demo(options.gb, options.stripes))
    except (DemoFailed, Differs) as error:
        print(f"the demo failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
