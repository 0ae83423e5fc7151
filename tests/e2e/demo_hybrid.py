"""A hybrid model with drafts over two and then three devices: two questions, the second one asked again.

Every token must be the one that a single device, rounding at the same cuts and without any drafts, gives. The
model file lies in a folder ``shared`` beside the checkout.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.assembly import Application, Network, assemble
from app.room.drafter import Acceptance
from app.room.ice import IceConfig
from app.room.planner import SplitMode
from app.room.segments import Fed
from app.room.settings import RoomSettings
from app.room.signal_servers import SignalServer
from app.room.state import Exchange, Phase
from tests.e2e.demo import DemoFailed, cached_of, let_in, open_room, second_device, start_model, until
from tests.e2e.one_device import Differs, compare
from tests.e2e.rooms import table_with
from tests.room.loopback import offer_loopback, room_server
from tests.shared import shared_root

FILE = "models/nano-qwen35moe-Q8_0.gguf"
NAMES = ("heron", "finch")
QUESTIONS = (
    "Tell me a story about a girl who lived in the mountains.",
    "Tell me a story about a boy who lived by the sea.",
)
FEWEST_ACCEPTED = 0.6
FEWEST_TOKENS = 64


@dataclass(frozen=True)
class Turn:
    """One answer with its figures. ``fed`` is what all caches held after it."""

    fed: Fed
    exchange: Exchange
    drafts: Acceptance
    reused: int


async def demo_hybrid(gb: float, stripes: int) -> None:
    path = shared_root() / FILE
    if not path.exists():
        raise DemoFailed(f"{path} is not there")
    offer_loopback()
    with tempfile.TemporaryDirectory() as home:
        os.environ["POOLED_HOME"] = home
        for devices in (2, 3):
            print(f"\n== {devices} devices")
            await room_of(devices, path, gb, stripes)


def main(gb: float, stripes: int) -> int:
    try:
        asyncio.run(demo_hybrid(gb, stripes))
    except (DemoFailed, Differs) as error:
        print(f"the demo failed: {error}", file=sys.stderr)
        return 1
    return 0


async def room_of(devices: int, path: Path, gb: float, stripes: int) -> None:
    style = Style(wording=Wording.EXACT, length=Length.SHORT)
    settings = RoomSettings(split=SplitMode.MEMORY, style=style)
    async with room_server(5.0) as server:
        network = Network((server.label,), IceConfig(stun=()), stripes, cloud=False)
        application = await assemble(network, settings, table_with(path, path.stem), fixed_host=True)
        try:
            await converse(application, server, path, devices, gb, stripes)
        finally:
            await application.close()


async def converse(
    application: Application, server: SignalServer, path: Path, devices: int, gb: float, stripes: int
) -> None:
    code = await open_room(application, gb)
    async with AsyncExitStack() as others:
        for i, name in enumerate(NAMES[: devices - 1]):
            device = second_device(server, code, gb, stripes, "--model", str(path), "--name", name)
            await let_in(application, await others.enter_async_context(device), people=i + 2)
        ranges = await start_model(application, path.stem, devices, fewest=1)
        turns = [await answer(application, it.Ask(question)) for question in QUESTIONS]
        turns.append(await answer(application, it.Regenerate()))
        context = application.room.state.speed.context_max
        await application.close()
    check(turns)
    cuts = [hi for _, hi in ranges]
    # The template writes an old answer otherwise than a new one: the second prompt holds the first answer as text.
    for turn in (turns[0], turns[2]):
        compared, speed = await asyncio.to_thread(compare, turn.fed, path, cuts, context)
        print(f"{compared} tokens equal one device without drafts, rounding at {cuts}; it alone: {speed:.1f} tok/s")
        if compared < FEWEST_TOKENS - 2:
            raise DemoFailed(f"only {compared} tokens could be compared")


def drafts_of(application: Application) -> Acceptance:
    """Of the last answer."""
    seat = application.room._seat  # pyright: ignore[reportPrivateUsage]
    return seat._creator.side.host.talk.drafts  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]


async def answer(application: Application, intent: it.Intent) -> Turn:
    """One answer; it is stopped after it is long enough, as a person would."""
    count = len(application.room.state.transcript)
    application.room.handle(intent)
    await until(application, lambda s: len(s.transcript) > count, "the answer")
    state = await until(application, lambda s: s.live is None or s.speed.tokens >= FEWEST_TOKENS, "tokens")
    if state.live is not None:
        application.room.handle(it.Stop())
    state = await until(application, lambda s: s.phase is Phase.ONLINE and s.live is None, "the end")
    turn = Turn(cached_of(application), state.transcript[-1], drafts_of(application), state.speed.reused)
    print(f"\n{turn.exchange.question}\n{turn.exchange.answer.strip()}\n    {turn.exchange.stats}")
    return turn


def check(turns: list[Turn]) -> None:
    first, second, again = turns
    drafts = first.drafts.plus(second.drafts).plus(again.drafts)
    accepted = drafts.accepted / max(drafts.judged, 1)
    print(
        f"\n{drafts.accepted} of {drafts.drafted} drafts accepted, {accepted:.0%} of those that were compared;", end=" "
    )
    print(f"{second.reused} and {again.reused} tokens reused")
    if any(turn.exchange.failed or len(turn.exchange.raw.split()) < FEWEST_TOKENS // 2 for turn in turns):
        raise DemoFailed("an answer failed or is too short")
    shared = min(len(again.exchange.raw), len(second.exchange.raw))
    if again.exchange.raw[:shared] != second.exchange.raw[:shared]:
        raise DemoFailed("the answer that was asked for again is another one")
    if accepted < FEWEST_ACCEPTED:
        raise DemoFailed(f"only {accepted:.0%} of the drafts were accepted")
    if again.reused <= FEWEST_TOKENS or again.reused < second.reused:
        raise DemoFailed("the question that was asked again was read from the start")
