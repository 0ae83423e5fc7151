"""How much memory a device may lend, and how much of that counts (spec: rooms §12.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.core.units import LARGEST_GB
from app.room.meta import Meta

SMALLEST_PLEDGE_GB = 0.5
IOS = frozenset({"iPhone", "iPad"})
ANDROID = frozenset({"Android", "Android tablet"})


@dataclass(frozen=True)
class PledgeRule:
    """The stepper of one kind of device, in GB. ``default`` None: half of what its GPU holds."""

    smallest: float
    default: float | None
    largest: float
    step: float
    capped: bool


def pledge_rule(kind: str, device_memory: float | None = None) -> PledgeRule:
    """``device_memory`` is the GB of RAM an Android device reports, when it does."""
    if kind in IOS:
        return PledgeRule(0.5, 0.5, 1.0, 0.5, capped=True)
    if kind in ANDROID:
        largest = _android_cap(device_memory)
        return PledgeRule(0.5, min(0.5, largest), largest, 0.5, capped=True)
    return PledgeRule(1.0, None, LARGEST_GB, 1.0, capped=False)


def _android_cap(device_memory: float | None) -> float:
    if device_memory is None or 2 < device_memory < 8:
        return 1.0
    return 0.5 if device_memory <= 2 else 2.0


def pledge_gb(meta: Meta, lowered_to: float = 0.0) -> float:
    """GB the planner counts. ``lowered_to`` is a smaller share set by the model host, 0 for none.

    A computer's word is taken even past the stepper's 64 GB; a phone's is not.
    """
    said = meta.contrib_gb if meta.contrib_gb > 0 else meta.max_buf_gb / 2 or SMALLEST_PLEDGE_GB
    rule = pledge_rule(meta.ua)
    caps = [rule.largest if rule.capped else 0.0, meta.pledge_max, lowered_to]
    return min([said, *(cap for cap in caps if cap > 0)])


def spare_gb(meta: Meta) -> float:
    """GB this device could still add to its pledge."""
    return max(0.0, pledge_rule(meta.ua).largest - pledge_gb(meta))


def ram_gb(meta: Meta) -> float:
    """GB of system RAM this device lends to parked experts."""
    refuses = meta.webgpu_said and not meta.webgpu
    return 0.0 if not meta.offload or refuses else max(0.0, min(LARGEST_GB, meta.ram_gb))


def share_after_death(layers: int, layer_gb: float, gb: float, deaths: int) -> float | None:
    """The smaller share of a device whose process died while loading; None: deal without it."""
    if deaths >= 2 or layers <= 1:
        return None
    smaller = max(layer_gb, min(gb / 2, layers // 2 * layer_gb))
    return None if smaller >= gb else math.floor(smaller * 100 + 0.5) / 100


def suggested_gb(gpu_gb: float) -> float:
    """First pledge of a computer: half of what its GPU holds, in whole GB, at least 4 where that fits."""
    half = math.floor(gpu_gb / 2)
    return float(min(LARGEST_GB, max(1, half, min(4, math.floor(gpu_gb)))))
