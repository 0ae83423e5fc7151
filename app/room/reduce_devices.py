"""How the roster, links and silence change the devices on the screen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import count

from app.room.events import CameBack, Degraded, LinkMeasured, Member, RosterChanged, WentSilent
from app.room.kinds import kind_of
from app.room.meta import OURS
from app.room.pledges import pledge_gb
from app.room.reduce_entry import noticed
from app.room.reductions import reduces
from app.room.state import RUNNING, Device, Phase, RoomState

MISSING_MATTERS = RUNNING | {Phase.DEGRADED}


@reduces(RosterChanged)
def _roster(state: RoomState, event: RosterChanged) -> RoomState:
    """Devices keep their colour and what was measured of them, by id and, after a return, by name."""
    devices: list[Device] = []
    for member in event.members:
        known = _known(state, member)
        taken = _colours(state, event.members) | {d.colour for d in devices}
        devices.append(_device(state, member, known, taken))
    changed = replace(state, devices=(*devices, *_missed(state, event.members)))
    return _come_and_gone(state, changed)


def _missed(state: RoomState, members: Collection[Member]) -> tuple[Device, ...]:
    """Devices that are gone but whose layers the running model still needs."""
    ids = {member.id for member in members} | {member.name for member in members}
    needed = state.phase in MISSING_MATTERS
    gone = (d for d in state.devices if needed and d.layers and d.id not in ids and d.name not in ids)
    return tuple(replace(device, away=True, ready=False, silent=False) for device in gone)


def _known(state: RoomState, member: Member) -> Device:
    by_id = next((device for device in state.devices if device.id == member.id), None)
    by_name = next((device for device in state.devices if device.name == member.name), None)
    return by_id or by_name or Device(id=member.id, name=member.name)


def _colours(state: RoomState, members: Collection[Member]) -> set[int | None]:
    """Colours of devices that stay."""
    ids = {member.id for member in members} | {member.name for member in members}
    return {device.colour for device in state.devices if device.id in ids or device.name in ids}


def _device(state: RoomState, member: Member, known: Device, taken: Collection[int | None]) -> Device:
    meta = member.meta
    colour = known.colour
    if meta.webgpu and colour is None:
        colour = next(i for i in count() if i not in taken)
    return replace(
        known,
        id=member.id,
        name=member.name,
        kind=kind_of(meta),
        gb=pledge_gb(meta) if meta.webgpu else 0.0,
        gpu=meta.gpu,
        holds_layers=meta.webgpu,
        colour=colour if meta.webgpu else None,
        me=member.id == state.me,
        creator=member.id == state.creator,
        model_host=member.id == state.model_host,
        client=meta.client,
        ours=meta.native == OURS,
        paused=meta.paused,
        away=False,
    )


def _come_and_gone(before: RoomState, after: RoomState) -> RoomState:
    """The first roster greets nobody."""
    if not before.devices:
        return after
    old, new = ({d.name for d in s.people if not d.away} for s in (before, after))
    for name in sorted(new - old):
        after = noticed(after, f"{name} joined.")
    for name in sorted(old - new):
        after = noticed(after, f"{name} left.")
    return after


def without_missed(state: RoomState) -> RoomState:
    """A new deal counts only on who is here."""
    return replace(state, devices=tuple(device for device in state.devices if not device.away))


def with_devices(state: RoomState, change: Callable[[Device], Device]) -> RoomState:
    return replace(state, devices=tuple(change(device) for device in state.devices))


def _changed(state: RoomState, id: str, change: Callable[[Device], Device]) -> RoomState:
    return with_devices(state, lambda device: change(device) if device.id == id else device)


@reduces(LinkMeasured)
def _link_measured(state: RoomState, event: LinkMeasured) -> RoomState:
    return _changed(state, event.id, lambda d: replace(d, rtt_ms=event.rtt_ms, path=event.path))


@reduces(WentSilent)
def _went_silent(state: RoomState, event: WentSilent) -> RoomState:
    changed = _changed(state, event.id, lambda d: replace(d, silent=True))
    if not event.holds_answer or state.phase is not Phase.ANSWERING:
        return changed
    return replace(changed, phase=Phase.HELD, held_by=name_of(state, event.id))


@reduces(CameBack)
def _came_back(state: RoomState, event: CameBack) -> RoomState:
    changed = _changed(state, event.id, lambda d: replace(d, silent=False, away=False))
    if state.phase is not Phase.HELD or state.held_by != name_of(state, event.id):
        return changed
    still_asked = Phase.ANSWERING if state.live else Phase.ONLINE
    return noticed(replace(changed, phase=still_asked, held_by=""), f"{state.held_by} is back.")


@reduces(Degraded)
def _degraded(state: RoomState, event: Degraded) -> RoomState:
    return replace(state, phase=Phase.DEGRADED, trouble=event.why, held_by="")


def name_of(state: RoomState, id: str) -> str:
    return next((device.name for device in state.devices if device.id == id), "")
