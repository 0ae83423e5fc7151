"""The creator leaves its room to another device, which goes on with everything."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from app.room import intents as it
from app.room import messages as m
from app.room.state import Phase
from tests.room.test_member_hosts import texts
from tests.room.test_restarts import undisturbed
from tests.room.test_rooms import ask, idle
from tests.room.world import Box, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def id_of(box: Box, name: str) -> str:
    return next(device.id for device in box.state.devices if device.name == name)


async def handed(world: World, otter: Box, heir: Box) -> None:
    otter.do(it.HandOver(id_of(otter, heir.name)))
    await world.until(lambda: heir.state.heir_wanted, 5)
    heir.do(it.AnswerHeir(yes=True))
    await world.until(lambda: heir.state.i_am_creator, 30)


async def test_a_room_goes_on_under_its_heir(world: World) -> None:
    otter, heron, finch = await world.started(1, 3, 3)
    await ask(world, finch, "One?")
    code, link = otter.state.code, otter.state.invite.link if otter.state.invite else ""
    await handed(world, otter, heron)
    await world.until(lambda: otter.state.phase is Phase.START, 5)
    await world.until(lambda: heron.state.phase is finch.state.phase is Phase.ONLINE, 90)
    assert heron.state.code == code
    assert heron.state.invite is not None
    assert heron.state.invite.link != link
    assert [device.name for device in finch.state.devices if device.creator] == ["heron"]
    assert otter.memory.last() is None
    await ask(world, finch, "Two?")
    await world.until(lambda: idle(heron, finch))
    assert [question for question, _ in texts(heron)] == ["One?", "Two?"]
    assert texts(heron) == texts(finch)
    assert texts(heron)[0] == (await undisturbed(("One?",), 1, 3, 3))[0]


async def test_an_answer_under_way_is_written_to_its_end_by_the_heir(world: World) -> None:
    world.network.latency = 0.05
    otter, heron, finch = await world.started(1, 6, 6)
    finch.do(it.Ask("One?"))
    await world.until(lambda: bool(finch.state.live and len(finch.state.live.answer) > 20))
    await handed(world, otter, heron)
    await world.until(lambda: bool(heron.state.transcript) and idle(heron, finch), 120)
    assert texts(heron) == texts(finch)
    assert len(heron.answer) == 150


async def test_a_device_that_does_not_want_the_room_is_not_given_it(world: World) -> None:
    otter, heron = await world.room(2, 2)
    otter.do(it.HandOver(id_of(otter, "heron")))
    await world.until(lambda: heron.state.heir_wanted, 5)
    heron.do(it.AnswerHeir(yes=False))
    await world.run(1)
    assert otter.state.i_am_creator
    assert "does not want" in otter.state.notices[-1].text


async def test_nobody_gives_or_takes_a_room_uninvited(world: World) -> None:
    otter, heron, finch = await world.room(2, 2, 2)
    to_otter = world.network.between(finch.transport.me, otter.transport.me)  # type: ignore[union-attr]
    assert to_otter is not None
    to_otter.send(m.encode(m.HeirAnswer(yes=True, fp="ab" * 32)))
    from_otter = to_otter.other
    from_otter.send(m.encode(m.Estate(passes=(("cd" * 32, "x"),))))
    aside = await finch.transport.dial(heron.transport.me)  # type: ignore[union-attr]
    for message in (m.HeirAsked(), m.Estate(), m.HandedOver(id=finch.transport.me, fp="ef" * 32)):  # type: ignore[union-attr]
        aside.send(m.encode(message))
    await world.run(2)
    assert otter.state.i_am_creator
    assert not heron.state.heir_wanted
    assert not any("owns the room" in notice.text for notice in heron.state.notices)
    otter.do(it.Leave())
    await world.run(5)
    assert finch.state.phase is Phase.OVER
