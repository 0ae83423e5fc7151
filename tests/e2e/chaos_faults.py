"""What befalls the devices of a chaos room. Every fault returns once its cause is over; the room may still mend."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum

from tests.e2e.chaos_process import Device
from tests.e2e.chaos_room import Room


class Fault(Enum):
    """The value is how the table names it."""

    KILL_MEMBER = "a member killed and back"
    SHORT_STOP = "a device stopped for 4-9 s"
    LONG_STOP = "a device stopped for 17-40 s"
    NETWORK = "datagrams delayed and lost"
    MUTE = "nothing a device sends arrives"
    LEAVE_JOIN = "a member leaves, another joins"
    KILL_CREATOR = "the creator killed and back"
    CLOSE_CREATOR = "the creator's program ended and back"


async def befall(fault: Fault, room: Room) -> None:
    await _FAULTS[fault](room)


async def kill_member(room: Room) -> None:
    victim = room.draw.choice(room.holders)
    await victim.kill()
    await _pause(room, 1, 15)
    await room.restart(victim, reopen=room.draw.random() < 0.5)


async def short_stop(room: Room) -> None:
    await _stop(room, room.draw.choice(room.devices), 4, 9)


async def long_stop(room: Room) -> None:
    """Past the silence after which its link is dropped: 12 s for a member that holds layers, 30 s for the creator."""
    victim = room.draw.choice(room.devices)
    await _stop(room, victim, *((32, 40) if victim is room.creator else (17, 25)))


async def _stop(room: Room, victim: Device, least: float, most: float) -> None:
    victim.signal(signal.SIGSTOP)
    try:
        await _pause(room, least, most)
    finally:
        victim.signal(signal.SIGCONT)


async def network(room: Room) -> None:
    draw = room.draw
    shape = {"delay": draw.uniform(0.02, 0.1), "jitter": draw.uniform(0, 0.05), "loss": draw.uniform(0.05, 0.2)}
    await _shaped(room, shape, 8, 20)


async def mute(room: Room) -> None:
    await _shaped(room, {"blocked": True}, 3, 20)


async def _shaped(room: Room, shape: Mapping[str, object], least: float, most: float) -> None:
    victim = room.draw.choice(room.devices)
    victim.tell("network", dict(shape))
    await _pause(room, least, most)
    victim.tell("network", {})


async def leave_join(room: Room) -> None:
    """Whoever stays deals again around the one that left, and once more for the newcomer."""
    leaver = room.draw.choice(room.holders)
    leaver.tell("leave")
    room.members.remove(leaver)
    newcomer = await room.add(leaver.name[:5])
    await leaver.ended_well()
    await newcomer.until(lambda s: s.phase == "online" or s.phase == "answering", room.patience, "the room")
    room.draw.choice(room.devices).tell("redeal")


async def kill_creator(room: Room) -> None:
    await room.creator.kill()
    await _pause(room, 0, 4)
    await room.restart(room.creator)


async def close_creator(room: Room) -> None:
    """Its person closes the window without leaving the room."""
    room.creator.tell("close")
    await room.creator.ended_well()
    await _pause(room, 0, 4)
    await room.restart(room.creator)


async def _pause(room: Room, least: float, most: float) -> None:
    """Seconds of the room's clock."""
    await asyncio.sleep(room.draw.uniform(least, most) * room.scale)


_FAULTS: dict[Fault, Callable[[Room], Awaitable[None]]] = {
    Fault.KILL_MEMBER: kill_member,
    Fault.SHORT_STOP: short_stop,
    Fault.LONG_STOP: long_stop,
    Fault.NETWORK: network,
    Fault.MUTE: mute,
    Fault.LEAVE_JOIN: leave_join,
    Fault.KILL_CREATOR: kill_creator,
    Fault.CLOSE_CREATOR: close_creator,
}
