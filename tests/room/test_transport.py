"""Whole rooms on 127.0.0.1: own room server, real connections, every way in."""

from __future__ import annotations

import asyncio
import gc

import pytest

from app.core.errors import LinkError
from app.room.codes import creator_id
from app.room.dialer import PeerUnavailable
from app.room.frame import Control, Frame, FrameKind
from app.room.gate import Credentials, Gate, Verdict
from app.room.peerjs import IdTaken
from app.room.proofs import new_mesh_key
from app.room.signal_servers import SignalServer
from app.room.transport import NotLetIn, Phase
from tests.room.loopback import Device, outcome, room_server, until, use_loopback

CODE = "4TKG9P"
CREATOR = creator_id(CODE)
HELLO = {"name": "otter", "meta": {"webgpu": True, "gpu": None}}


@pytest.fixture(autouse=True)
def _loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    use_loopback(monkeypatch)


async def _opened(server: SignalServer, gate: Gate, stripes: int = 1) -> Device:
    creator = Device([server], stripes)
    await creator.transport.open_room(CODE, gate, {"name": "creator", "meta": {"api": 2}})
    return creator


async def _joined(server: SignalServer, gate: Gate, stripes: int = 1) -> Device:
    device = Device([server], stripes)
    await device.transport.join(CODE, Credentials(key=gate.key), HELLO)
    return device


async def _close(*devices: Device) -> None:
    for device in devices:
        await device.transport.close()


async def test_key_opens_the_door() -> None:
    async with room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate), Device([server])
        joined = await device.transport.join(CODE, Credentials(key=gate.key), HELLO)
        assert joined.verdict is Verdict.TRUSTED
        assert joined.creator_hello["name"] == "creator"
        me = device.transport.me
        await until(lambda: me in creator.hellos)
        assert creator.hellos[me]["meta"] == {"webgpu": True}, "nulls mean absent"
        assert not creator.waiting
        joined.link.send({"t": "ping", "ts": 1})
        creator.link(me).send({"t": "roster", "members": []})
        await until(lambda: creator.messages[me] and device.messages[CREATOR])
        assert device.messages[CREATOR] == [{"t": "roster", "members": []}]
        assert joined.link.path == "direct"
        await _close(device, creator)


async def test_a_link_names_the_certificate_the_creator_must_show() -> None:
    async with room_server() as server:
        gate = Gate()
        creator, device, wary = await _opened(server, gate), Device([server]), Device([server])
        named = creator.transport.fingerprint
        assert len(named) == 64
        assert named != device.transport.fingerprint
        joined = await device.transport.join(CODE, Credentials(key=gate.key, fingerprint=named), HELLO)
        assert joined.verdict is Verdict.TRUSTED
        with pytest.raises(NotLetIn) as refused:
            await wary.transport.join(CODE, Credentials(key=gate.key, fingerprint="ab" * 32), HELLO)
        assert refused.value.impostor
        assert wary.transport.me not in creator.hellos
        await _close(wary, device, creator)


async def test_allow_shows_equal_digits_and_the_pass_opens_next_time() -> None:
    async with room_server() as server:
        creator, device = await _opened(server, Gate()), Device([server])
        joining = asyncio.create_task(device.transport.join(CODE, Credentials(), HELLO))
        await until(lambda: creator.waiting and device.digits)
        waiting = creator.waiting[device.transport.me]
        assert (waiting.name, waiting.digits) == ("otter", device.digits)
        creator.transport.allow(device.transport.me)
        joined = await joining
        assert not creator.waiting
        device.link(CREATOR).close("gone for a moment")
        await until(lambda: creator.ended)
        again = await device.transport.join(CODE, Credentials(pass_text=joined.pass_text), {**HELLO, "back": 1})
        assert again.verdict is Verdict.TRUSTED
        assert again.pass_text == joined.pass_text
        await until(lambda: creator.hellos[device.transport.me].get("back") == 1)
        await _close(device, creator)


async def test_deny_turns_away() -> None:
    async with room_server() as server:
        creator, device = await _opened(server, Gate()), Device([server])
        joining = asyncio.create_task(outcome(device.transport.join(CODE, Credentials(), HELLO)))
        await until(lambda: creator.waiting)
        creator.transport.deny(device.transport.me)
        assert isinstance(await joining, NotLetIn)
        assert device.states[-1].phase is Phase.REFUSED
        assert not creator.transport.links
        await _close(device, creator)


async def test_third_device_dials_the_second_over_proved_stripes() -> None:
    async with room_server() as server:
        gate = Gate()
        creator = await _opened(server, gate, 3)
        ann, bob = await _joined(server, gate, 3), await _joined(server, gate, 3)
        link = await bob.transport.dial(ann.transport.me)
        await until(lambda: bob.transport.me in ann.hellos)
        back = ann.link(bob.transport.me)
        await until(lambda: link.stripes == 3 and back.stripes == 3)
        sent = [Frame(FrameKind.HIDDEN_BATCH, n, 4, bytes([n]) * 40_000, True, Control(rollback=2)) for n in range(20)]
        for frame in sent:
            link.send_frame(frame)
        await until(lambda: len(ann.frames[bob.transport.me]) == 20)
        assert ann.frames[bob.transport.me] == sent
        assert await bob.transport.dial(ann.transport.me) is link
        await _close(bob, ann, creator)


async def test_a_device_with_another_mesh_key_is_not_linked() -> None:
    async with room_server() as server:
        gate = Gate()
        creator = await _opened(server, gate)
        ann, bob = await _joined(server, gate), await _joined(server, gate)
        bob.transport._mesh_key = new_mesh_key()
        assert isinstance(await outcome(bob.transport.dial(ann.transport.me)), LinkError)
        assert bob.transport.me not in ann.hellos
        await _close(bob, ann, creator)


async def test_an_extra_connection_with_a_wrong_proof_is_closed() -> None:
    """It claims a member's id, so the room server would let it through."""
    async with room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate), await _joined(server, gate)
        link = creator.link(device.transport.me)
        device.transport._mesh_key = new_mesh_key()
        line = await device.transport._dialer.dial(CREATOR, stripe=True)
        assert isinstance(await outcome(device.transport._prove_stripe(line)), LinkError)
        await until(lambda: not line.open)
        assert link.stripes == 1
        assert link.open
        await _close(device, creator)


async def test_lost_stripe_is_dialed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.room.stripes.REDIAL_S", 0.02)
    async with room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate, 2), await _joined(server, gate, 2)
        link = device.link(CREATOR)
        await until(lambda: link.stripes == 2)
        first = link._lines[1]
        first.close("cut")
        await until(lambda: link.stripes == 2 and link._lines[1] is not first)
        await _close(device, creator)


async def test_newer_link_replaces_the_old_one() -> None:
    async with room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate), await _joined(server, gate)
        me = device.transport.me
        await until(lambda: me in creator.transport.links)
        first = creator.link(me)
        await device.transport.join(CODE, Credentials(key=gate.key), HELLO)
        await until(lambda: creator.transport.links.get(me) not in (None, first))
        assert not first.open
        assert (me, "reconnected") in creator.ended
        await _close(device, creator)


async def test_nobody_reaches_a_device_that_is_not_in_a_room() -> None:
    async with room_server() as server:
        gate = Gate()
        creator, ann, outsider = await _opened(server, gate), await _joined(server, gate), Device([server])
        joining = asyncio.create_task(outcome(outsider.transport.join(CODE, Credentials(), HELLO)))
        await until(lambda: creator.waiting)
        assert isinstance(await outcome(ann.transport.dial(outsider.transport.me)), LinkError)
        assert isinstance(await outcome(outsider.transport.dial(ann.transport.me)), LinkError)
        assert not outsider.transport.links
        outsider.transport._member = True
        await outcome(outsider.transport.dial(ann.transport.me))
        await until(lambda: outsider.ended)
        assert outsider.transport.me not in ann.hellos
        await _close(outsider, ann, creator)
        assert isinstance(await joining, NotLetIn)


async def test_giving_up_in_the_lobby_withdraws_the_request() -> None:
    async with room_server() as server:
        creator, device = await _opened(server, Gate()), Device([server])
        joining = asyncio.create_task(device.transport.join(CODE, Credentials(), HELLO))
        await until(lambda: creator.waiting)
        joining.cancel()
        await until(lambda: not creator.waiting)
        await _close(device, creator)


async def test_unknown_code_and_taken_code() -> None:
    async with room_server() as server:
        creator = await _opened(server, Gate())
        device, other = Device([server]), Device([server])
        assert isinstance(await outcome(device.transport.join("ABCDEF", Credentials(), HELLO)), PeerUnavailable)
        assert isinstance(await outcome(other.transport.open_room(CODE, Gate(), HELLO)), IdTaken)
        await _close(device, other, creator)


async def test_joiner_finds_the_room_on_a_later_server() -> None:
    async with room_server() as empty, room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate), Device([empty, server])
        joined = await device.transport.join(CODE, Credentials(key=gate.key), HELLO)
        assert joined.link.open
        assert device.transport.server == server
        await _close(device, creator)


async def test_the_link_outlives_the_room_server() -> None:
    async with room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate), await _joined(server, gate)
        link = device.link(CREATOR)
    await until(lambda: device.states[-1].phase is Phase.SERVER_LOST)
    link.send({"t": "still here"})
    await until(lambda: creator.messages[device.transport.me])
    await _close(device, creator)


async def test_sends_after_the_end_are_quiet_and_nothing_is_left() -> None:
    async with room_server() as server:
        gate = Gate()
        creator, device = await _opened(server, gate, 2), await _joined(server, gate, 2)
        link = device.link(CREATOR)
        link.send({"t": "leaving"})
        await _close(device)
        link.send({"t": "late"})
        link.send_frame(Frame(FrameKind.HIDDEN, 0, 1, b"\0\0"))
        await until(lambda: creator.ended)
        assert {"t": "leaving"} in creator.messages[device.transport.me]
        await _close(creator)
    await asyncio.sleep(0.05)
    gc.collect()
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []
