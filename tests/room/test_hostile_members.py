"""A member that says impossible things harms nobody but itself."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest

from app.prompt.chat import UserTurn
from app.room import intents as it
from app.room import messages as m
from app.room.frame import Frame, FrameKind
from app.room.ports import Message
from app.room.state import Phase
from tests.room.api.asking import until
from tests.room.test_rooms import MOST, cuts, idle, prompt, words
from tests.room.toy import one_device
from tests.room.world import Box, MemoryLink, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def link_home(world: World, box: Box) -> MemoryLink:
    assert box.transport is not None
    return next(link for link in world.network.links if link.me == box.transport.me and link.open)


async def say(world: World, box: Box, message: Message) -> None:
    """Puts a raw message past the member's own code."""
    link_home(world, box).other.on_message(message)
    await world.run(1)


async def test_the_roster_survives_an_impossible_description(world: World) -> None:
    otter, heron = await world.room(2, 2)
    assert otter.transport is not None
    near, far = world.network.pair("stranger", otter.transport.me)
    otter.transport.on_link(far, {"name": "wren", "meta": {"contribGB": -(2**40), "ctx": -(2**40)}})
    await world.settle()
    assert [device.name for device in heron.state.devices] == ["otter", "heron", "wren"]
    near.close()
    await world.settle()
    assert [device.name for device in heron.state.devices] == ["otter", "heron"]


async def test_the_clock_goes_on_after_a_share_that_is_no_number(world: World) -> None:
    otter, heron = await world.room(2, 2)
    heron.compute.slow_load = asyncio.Event()
    otter.do(it.Start())
    await world.settle()
    await say(world, heron, {"t": "ai-progress", "pct": float("nan")})
    heron.compute.slow_load.set()
    await world.until(lambda: otter.state.phase is Phase.ONLINE)


async def test_a_long_complaint_still_ends_the_start_on_every_screen(world: World) -> None:
    otter, heron = await world.room(2, 2)
    heron.compute.slow_load = asyncio.Event()
    otter.do(it.Start())
    await world.settle()
    await say(world, heron, {"t": "ai-error", "message": "x" * m.LONGEST_LINE, "load": 1})
    assert otter.state.phase is heron.state.phase is Phase.ROOM


async def test_a_roster_of_a_members_making_counts_nowhere(world: World) -> None:
    otter, heron, finch = await world.room(2, 2, 2)
    assert finch.transport is not None
    assert heron.transport is not None
    forged = {"t": "roster", "members": [{"id": finch.transport.me, "name": "king", "meta": {}}]}
    (await finch.transport.dial(heron.transport.me)).send(forged)
    await say(world, finch, forged)
    for box in (otter, heron):
        assert [device.name for device in box.state.devices] == ["otter", "heron", "finch"]


async def test_a_start_that_comes_twice_is_one_start(world: World) -> None:
    otter, heron = await world.room(2, 2)
    heron.compute.slow_load = asyncio.Event()
    press = {"t": "ai-start-req", "model": "toy", "by": "heron"}
    for _ in range(3):
        link_home(world, heron).send(press)
    await world.run(1)
    assert otter.state.phase is Phase.STARTING
    heron.compute.slow_load.set()
    await world.until(lambda: otter.state.phase is heron.state.phase is Phase.ONLINE)
    assert len(otter.compute.loads) == len(heron.compute.loads) == 1
    # The creator's own word, sent back to it or on to others, starts nothing either.
    relayed = m.encode(m.StartRequest(model="toy", boss=otter.transport.me, by="heron"))  # type: ignore[union-attr]
    link_home(world, heron).other.other.on_message(relayed)
    await world.run(1)
    assert len(otter.compute.loads) == 1


async def test_returned_columns_of_any_but_the_last_device_are_ignored(world: World) -> None:
    otter, heron, finch = await world.started(1, 1, 2)
    chain = sorted((box for box in (heron, finch)), key=lambda box: box.compute.loads[0].part.lo)
    first = chain[0]
    world.network.latency = 0.1
    otter.do(it.Ask("Who says so?"))
    for position in range(300):
        link_home(world, first).send_frame(Frame(FrameKind.RETURN, position, 1, bytes(32)))
        link_home(world, first).send_frame(Frame(FrameKind.RETURN_BATCH, position, 1, bytes(32)))
    await world.until(lambda: idle(otter, heron, finch))
    world.network.latency = 0.0
    assert otter.answer == words(one_device(prompt(UserTurn("Who says so?")), MOST, cuts(otter)))


async def test_an_api_client_asks_and_rules_nothing(world: World) -> None:
    otter, heron = await world.started(2, 2)
    assert otter.transport is not None
    near, far = world.network.pair("api-1", otter.transport.me)
    otter.transport.on_link(far, {"name": "tool", "meta": {"api": 1, "client": "x", "webgpu": 1, "contribGB": 99}})
    await world.settle()
    for message in (
        m.StartRequest(model="toy-b"),
        m.Pledge(gb=4_000),
        m.Command(cmd="new"),
        m.Command(cmd="redeal"),
        m.Command(cmd="down"),
        m.PastIs(model="toy"),
        m.StartRefused(why="no"),
        m.Typing(name="otter"),
        m.DeviceError(message="broken", load=True),
        m.LinkLost(name="heron"),
        m.Ready(),
    ):
        near.send(m.encode(message))
    await world.run(2)
    assert otter.state.phase is heron.state.phase is Phase.ONLINE
    assert otter.state.pooled_gb == 4
    assert otter.state.typing == ""
    assert len(otter.compute.loads) == 1
    near.send(m.encode(m.Ask(text="I am the owner.")))
    near.send(m.encode(m.Ask(api=1, rid="r1", messages=[{"role": "user", "text": "May I ask?"}])))
    await until(world, lambda: bool(otter.state.transcript) and idle(otter, heron))
    assert [item.question for item in otter.state.transcript] == ["May I ask?"]


HOSTILE = "\x1b[2J\x1b]0;owned\x07<b onload='x'>\u202egpj.exe\x00"


def texts(value: object) -> Iterator[str]:
    """Every text in a state."""
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from texts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


async def test_names_and_sentences_of_peers_are_cleaned_wherever_they_are_shown(world: World) -> None:
    otter, heron = await world.room(2, 2)
    assert otter.transport is not None
    _, far = world.network.pair("stranger-1", otter.transport.me)
    meta = {"ua": HOSTILE, "gpu": HOSTILE, "native": HOSTILE, "client": HOSTILE, "model": HOSTILE}
    otter.transport.on_link(far, {"name": HOSTILE, "meta": meta})
    await world.settle()
    home = link_home(world, heron)
    for message in (
        m.Typing(name=HOSTILE),
        m.ChatReset(by=HOSTILE),
        m.StartRequest(model="toy", by=HOSTILE),
        m.Degraded(why=HOSTILE),
        m.StartFailed(why=HOSTILE),
        m.Busy(why=HOSTILE),
        m.ReadyAll(model="toy", label=HOSTILE, ctx=64),
    ):
        home.other.send(m.encode(message))
        await world.settle()
        for box in (otter, heron):
            odd = [text for text in texts(box.state) if set(text) & set("\x1b\x00\x07\u202e")]
            assert odd == [], message
    assert [device.name for device in heron.state.devices] == ["otter", "heron", "[2J]0;ownedb onload=xgpj.exe"]
    assert heron.state.label == "[2J]0;owned<b onload='x'>gpj.exe"


@pytest.mark.parametrize("model", ["", "nothing of that name", "toy-huge"])
async def test_a_start_that_cannot_be_leaves_the_running_model_alone(world: World, model: str) -> None:
    otter, heron = await world.started(2, 2)
    await say(world, heron, {"t": "ai-start-req", "model": model})
    assert otter.state.phase is heron.state.phase is Phase.ONLINE
    assert heron.state.notices
    heron.do(it.Ask("Still there?"))
    await world.until(lambda: bool(heron.state.transcript) and not heron.state.live)
    assert heron.answer
