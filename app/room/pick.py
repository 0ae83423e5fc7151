"""Which device runs the model: a rule every device computes alike (spec: rooms §10.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from app.room.events import Member
from app.room.meta import Meta

HALF = 0.5
EDGE = 1.5


class Candidate(NamedTuple):
    """A device that could run the model."""

    peer_id: str
    meta: Meta


def pick_model_host(devices: Iterable[Candidate]) -> str | None:
    """Peer id of the model host, None for an empty room. Ties go to the lower id."""
    known = sorted((device for device in devices if device.peer_id), key=lambda device: device.peer_id)
    if not known:
        return None
    best = max(known, key=_rank)
    if not best.meta.webgpu or best.meta.gbps <= 0:
        return best.peer_id
    faster = [device for device in known if _beats(device, best)]
    return max(faster, key=lambda d: (d.meta.gbps, _rank(d)), default=best).peer_id


def model_host_of(members: Iterable[Member], creator: str) -> str:
    """Who would run a model in this room, "" for an empty one. A creator may have fixed itself (rooms §7.2)."""
    candidates = [Candidate(member.id, member.meta) for member in members if not member.meta.is_api]
    if any(device.peer_id == creator and device.meta.fixed_host and device.meta.webgpu for device in candidates):
        return creator
    return pick_model_host(candidates) or ""


def _rank(device: Candidate) -> tuple[bool, bool, float]:
    meta = device.meta
    return meta.webgpu, not meta.is_phone, meta.contrib_gb if meta.webgpu else 0.0


def _beats(device: Candidate, best: Candidate) -> bool:
    """The same GPU measured twice may differ by noise, so its text must differ."""
    mine, other = device.meta, best.meta
    same_class = mine.webgpu == other.webgpu and mine.is_phone == other.is_phone
    same_gpu = bool(mine.gpu) and mine.gpu == other.gpu
    enough = mine.contrib_gb >= HALF * other.contrib_gb
    return same_class and not same_gpu and enough and mine.gbps >= EDGE * other.gbps
