"""The main job on a real engine: a room of two devices says what one device says, token for token."""

import asyncio
from pathlib import Path

import pytest

from app.prompt.chat import Length, Style, Wording
from app.room import intents as it
from app.room.assembly import Application
from app.room.planner import SplitMode
from app.room.segments import Fed
from app.room.settings import RoomSettings
from app.room.state import Phase
from tests.e2e.one_device import compare
from tests.e2e.rooms import device, table_with, until
from tests.room.loopback import room_server, use_loopback

MODEL = Path(__file__).parents[1] / "data" / "golden" / "tiny-qwen3.gguf"
SETTINGS = RoomSettings(split=SplitMode.MEMORY, style=Style(wording=Wording.EXACT, length=Length.SHORT))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    use_loopback(monkeypatch)


async def open_and_join(creator: Application, second: Application) -> None:
    creator.room.handle(it.OpenRoom("otter", 1))
    state = await until(creator, lambda s: s.invite is not None)
    assert state.invite
    second.room.handle(it.JoinRoom(state.invite.link, "heron", 1))
    await until(creator, lambda s: len(s.people) == 2)
    await until(second, lambda s: s.can_start and len(s.people) == 2)
    second.room.handle(it.Start())
    await until(second, lambda s: s.phase is Phase.ONLINE)


async def ask(app: Application, question: str) -> str:
    count = len(app.room.state.transcript)
    app.room.handle(it.Ask(question))
    state = await until(app, lambda s: len(s.transcript) > count and s.live is None)
    assert not state.transcript[-1].failed, state.transcript[-1].stats
    return state.transcript[-1].raw


def fed_of(app: Application) -> Fed:
    return app.room._seat._creator.side.host.talk.cached  # type: ignore[union-attr]


async def test_two_devices_say_what_one_says() -> None:
    table = table_with(MODEL)
    async with room_server() as server:
        creator, second = [await device(server, table, SETTINGS) for _ in range(2)]
        try:
            await open_and_join(creator, second)
            answers = [await ask(second, "Who are you?"), await ask(creator, "And who am I?")]
            await until(second, lambda s: [x.raw for x in s.transcript] == answers, 10)
            ranges = sorted(d.layers for d in creator.room.state.devices if d.layers)
            assert len(ranges) == 2
            assert creator.room.state.speed.reused > 100
            fed, context = fed_of(creator), creator.room.state.speed.context_max
        finally:
            await second.close()
            await creator.close()
    compared, _ = await asyncio.to_thread(compare, fed, MODEL, [hi for _, hi in ranges], context)
    assert compared > 150


async def test_the_answer_goes_on_when_the_second_device_leaves() -> None:
    table = table_with(MODEL)
    async with room_server() as server:
        creator, second = [await device(server, table, SETTINGS) for _ in range(2)]
        try:
            await open_and_join(creator, second)
            creator.room.handle(it.Ask("Tell me everything."))
            await until(creator, lambda s: s.speed.tokens >= 10)
            await second.close()
            creator.room.handle(it.Redeal())
            state = await until(creator, lambda s: bool(s.transcript) and s.live is None and s.phase is Phase.ONLINE)
            assert not state.transcript[-1].failed
            assert state.speed.tokens == 150
            assert [d.layers for d in state.devices] == [(1, 3)]
        finally:
            await creator.close()
