"""Does a model fit, and which device holds which layers (spec: rooms §12.3-12.7)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from app.room.memory import Need
from app.room.offload import ExpertSizes, Lender, Parker, Parking, share_beyond_caps
from app.room.split import Split, split_by_memory, split_for_speed

INFINITE = math.inf
ROUNDING = 1e-9


class SplitMode(Enum):
    """What a deal is good at."""

    SPEED = "speed"
    MEMORY = "memory"


class LeftOut(Enum):
    """Why a device of the room holds no layers."""

    UNNEEDED = "unneeded"
    SMALL = "small"
    LATE = "late"


@dataclass(frozen=True)
class Offer:
    """What one device lends, in bytes. The first offer of a list is the model host's."""

    pledge: float
    phone: bool = False
    ram: float = 0.0
    ms_per_layer: float | None = None


@dataclass(frozen=True)
class Fit:
    """``caps`` whole layers a device could hold; ``raises`` extra bytes each alone would have to lend."""

    fits: bool
    caps: tuple[int, ...]
    missing: int
    short: float
    raises: tuple[float, ...]
    offload: bool = False
    resident_caps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Deal:
    """Layer ranges of the devices in ``used`` (indices, in chain order) and why the others hold none."""

    fits: bool
    used: tuple[int, ...] = ()
    assigned: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    held: tuple[int, ...] = ()
    out: dict[int, LeftOut] = field(default_factory=dict[int, LeftOut])
    parkings: tuple[Parking | None, ...] = ()


def _space(need: Need, offers: Sequence[Offer]) -> list[float]:
    """Bytes each device has for layers."""
    fixed = [need.reserve + (need.host_bytes if i == 0 else 0) for i in range(len(offers))]
    return [offer.pledge - taken for offer, taken in zip(offers, fixed, strict=True)]


def layer_caps(need: Need, offers: Sequence[Offer]) -> tuple[int, ...]:
    """Whole layers each device could hold."""
    caps = [math.floor(space / need.layer_bytes + ROUNDING) for space in _space(need, offers)]
    return tuple(max(0, cap) for cap in caps)


def fit(need: Need, offers: Sequence[Offer], experts: ExpertSizes | None = None) -> Fit:
    """Parking experts in RAM is tried only when the pledges alone are short."""
    plain = _plain_fit(need, offers)
    if plain.fits or experts is None:
        return plain
    caps = _parking_caps(need, offers, experts, plain.caps)
    if plain.caps[0] < 1 or sum(caps) < need.layers:
        return plain
    return Fit(True, caps, 0, 0, (0,) * len(caps), offload=True, resident_caps=plain.caps)


def _plain_fit(need: Need, offers: Sequence[Offer]) -> Fit:
    caps = layer_caps(need, offers)
    has = sum(caps)
    missing = max(0, need.layers - has, 0 if caps[0] >= 1 else 1)
    if missing == 0:
        return Fit(True, caps, 0, 0, (0,) * len(caps))
    raises = tuple(_raise(i, need, offers, caps) for i in range(len(caps)))
    return Fit(False, caps, missing, min(raises), raises)


def _raise(i: int, need: Need, offers: Sequence[Offer], caps: Sequence[int]) -> float:
    if i > 0 and caps[0] < 1:
        return INFINITE
    lacking = need.layers - sum(caps)
    wanted = caps[i] + lacking if i else max(1, caps[0] + lacking)
    return max(1, math.ceil(wanted * need.layer_bytes - _space(need, offers)[i]))


def _lenders(need: Need, offers: Sequence[Offer], caps: Sequence[int]) -> list[Lender]:
    spaces = _space(need, offers)
    return [Lender(spaces[i], offer.ram, caps[0], exact=i == 0) for i, offer in enumerate(offers)]


def _parking_caps(need: Need, offers: Sequence[Offer], experts: ExpertSizes, caps: Sequence[int]) -> tuple[int, ...]:
    parker = Parker(need.layers, need.layer_bytes, experts)
    lenders = _lenders(need, offers, caps)
    return tuple(parker.most(lender, cap) if lender.ram > 0 else cap for lender, cap in zip(lenders, caps, strict=True))


def deal(
    need: Need,
    offers: Sequence[Offer],
    mode: SplitMode = SplitMode.SPEED,
    experts: ExpertSizes | None = None,
    *,
    phone_layers: bool = False,
    without: Collection[int] = (),
) -> Deal:
    """Shares the layers out within every pledge. ``fits`` False: nothing is dealt.

    The offers in ``without`` are left unused, although they count as unneeded, not as small.
    """
    if not without:
        return _deal(need, offers, mode, experts, phone_layers)
    lent = [replace(offer, pledge=0.0, ram=0.0) if i in without else offer for i, offer in enumerate(offers)]
    dealt = _deal(need, lent, mode, experts, phone_layers)
    spared = {i: LeftOut.UNNEEDED for i, cap in enumerate(layer_caps(need, offers)) if i in without and cap}
    return replace(dealt, out={**dealt.out, **spared}) if dealt.fits else dealt


def _deal(
    need: Need, offers: Sequence[Offer], mode: SplitMode, experts: ExpertSizes | None, phone_layers: bool
) -> Deal:
    fitted = fit(need, offers, experts)
    if not fitted.fits:
        return Deal(fits=False)
    if fitted.offload and experts is not None:
        return _parking_deal(need, offers, fitted, experts, phone_layers)
    if mode is SplitMode.SPEED:
        measured = [offer.ms_per_layer for offer in offers]
        split = split_for_speed(need.layers, fitted.caps, measured, _phones(offers))
    else:
        split = _memory_split(need, offers, fitted.caps, phone_layers)
    return _record(need, split, fitted.caps)


def _phones(offers: Sequence[Offer]) -> list[bool]:
    """The model host never counts as a phone."""
    return [offer.phone and i > 0 for i, offer in enumerate(offers)]


def _without_phones(offers: Sequence[Offer], caps: Sequence[int], layers: int) -> list[int]:
    """Caps with phones at none, where the computers hold everything."""
    computers = [0 if phone else cap for phone, cap in zip(_phones(offers), caps, strict=True)]
    return computers if sum(computers) >= layers else list(caps)


def _memory_split(need: Need, offers: Sequence[Offer], caps: Sequence[int], phone_layers: bool) -> Split:
    most = list(caps) if phone_layers else _without_phones(offers, caps, need.layers)
    weights = [max(0.0, space) if cap else 0.0 for space, cap in zip(_space(need, offers), most, strict=True)]
    return split_by_memory(need.layers, weights, most)


def _parking_deal(need: Need, offers: Sequence[Offer], fitted: Fit, experts: ExpertSizes, phone_layers: bool) -> Deal:
    most = list(fitted.caps) if phone_layers else _without_phones(offers, fitted.caps, need.layers)
    plain = [min(cap, top) for cap, top in zip(fitted.resident_caps, most, strict=True)]
    split = Split(share_beyond_caps(need.layers, plain, most))
    parker = Parker(need.layers, need.layer_bytes, experts)
    lenders = _lenders(need, offers, fitted.resident_caps)
    parkings = tuple(
        parker.settled(lender, hi - lo, lo) if hi - lo > cap else None
        for lender, cap, (lo, hi) in zip(lenders, fitted.resident_caps, split.ranges, strict=True)
    )
    return _with_parkings(_record(need, split, fitted.caps), parkings, offers)


def _with_parkings(dealt: Deal, parkings: tuple[Parking | None, ...], offers: Sequence[Offer]) -> Deal:
    """A device that parks holds its whole pledge."""
    used = tuple(parkings[i] for i in dealt.used)
    held = [
        int(offers[i].pledge) if parking else held
        for i, parking, held in zip(dealt.used, used, dealt.held, strict=True)
    ]
    return Deal(True, dealt.used, dealt.assigned, dealt.ranges, tuple(held), dealt.out, used)


def _record(need: Need, split: Split, caps: Sequence[int]) -> Deal:
    used = split.used
    fixed = {i: need.reserve + (need.host_bytes if i == 0 else 0) for i in used}
    unused = [i for i in range(len(caps)) if i not in fixed]
    return Deal(
        fits=True,
        used=used,
        assigned=tuple(split.assigned[i] for i in used),
        ranges=tuple(split.ranges[i] for i in used),
        held=tuple(math.ceil(split.assigned[i] * need.layer_bytes) + fixed[i] for i in used),
        out={i: LeftOut.SMALL if caps[i] < 1 else LeftOut.UNNEEDED for i in unused},
    )
