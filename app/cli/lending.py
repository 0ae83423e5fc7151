"""How much this device lends, and why so much (spec: product §4.4, T-023)."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from app.cli.options import Lending
from app.cli.text import gb_text
from app.core.memory import (
    KEPT_BY_DRIVER_GB,
    KEPT_BY_SYSTEM_GB,
    KEPT_BY_SYSTEM_SHARE,
    KEPT_FREE_GB,
    SMALLEST_GB,
    STEP_GB,
    Graphics,
    Ram,
    default_pledge_gb,
    graphics,
    system_ram,
)
from app.core.settings import Settings
from app.room.compute import GpuSummary

LEAST_KEPT_BY_DRIVER_GB = 0.5
LEAST_KEPT_BY_SYSTEM_GB = 4.0


@dataclass(frozen=True)
class Lent:
    """``gb`` 0: this device only asks. ``why`` is the middle of a sentence."""

    gb: float
    why: str


async def lent(options: Lending, settings: Settings, gpu: GpuSummary | None) -> Lent:
    """What the flags say, else the settings, else the memory rule."""
    if gpu is None:
        return Lent(0.0, "no graphics processor can be used here")
    if options.gb is not None:
        return Lent(options.gb, "as you asked")
    found = await asyncio.to_thread(graphics, gpu.name, gpu.buffer, gpu.software)
    ram = system_ram()
    if options.most:
        return most(found, ram)
    if settings.pledge_gb > 0:
        return Lent(settings.pledge_gb, "as set in the settings")
    return by_rule(found, ram)


async def most_here(gpu: GpuSummary | None) -> float:
    """GB, 0 where nothing can be lent."""
    if gpu is None:
        return 0.0
    found = await asyncio.to_thread(graphics, gpu.name, gpu.buffer, gpu.software)
    return most(found, system_ram()).gb


def by_rule(gpu: Graphics, ram: Ram) -> Lent:
    """``default_pledge_gb`` in words."""
    gb = default_pledge_gb(gpu, ram)
    if not gb:
        return Lent(0.0, f"less than {gb_text(SMALLEST_GB)} can be spared")
    if not gpu.unified:
        return Lent(gb, _own_memory(gpu))
    kept = max(KEPT_BY_SYSTEM_GB, ram.total * KEPT_BY_SYSTEM_SHARE)
    if gb > ram.total - kept or gb > ram.free - KEPT_FREE_GB - STEP_GB:
        return Lent(gb, f"{_rounded(ram.free)} of memory are free, and some stay so")
    return Lent(gb, f"of {_rounded(ram.total)} of memory {_rounded(kept)} stay with the system")


def most(gpu: Graphics, ram: Ram) -> Lent:
    """All but what the driver or the system cannot do without."""
    if gpu.unified:
        spare = min(ram.total - LEAST_KEPT_BY_SYSTEM_GB, ram.free - LEAST_KEPT_BY_DRIVER_GB)
        why = f"all of {_rounded(ram.free)} of free memory but what the system needs"
    else:
        spare = (gpu.largest_buffer if gpu.free is None else gpu.free) - LEAST_KEPT_BY_DRIVER_GB
        why = "all of its memory but what the driver needs"
    gb = math.floor(spare / STEP_GB) * STEP_GB
    return Lent(gb, why) if gb >= SMALLEST_GB else Lent(0.0, f"less than {gb_text(SMALLEST_GB)} can be spared")


def _own_memory(gpu: Graphics) -> str:
    if gpu.free is None:
        return "its free memory is not known, so half of its largest buffer"
    return f"{_rounded(gpu.free)} of its memory are free, {gb_text(KEPT_BY_DRIVER_GB)} stay with the driver"


def _rounded(gb: float) -> str:
    return gb_text(round(gb, 1))
