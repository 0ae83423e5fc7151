"""How much memory this computer may lend by itself (spec: product §4.4)."""

from __future__ import annotations

import math
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.core.units import GIB, LARGEST_GB

SMALLEST_GB = 1.0
STEP_GB = 0.5
KEPT_BY_DRIVER_GB = 1.5
KEPT_BY_SYSTEM_GB = 8.0
KEPT_BY_SYSTEM_SHARE = 0.35
KEPT_FREE_GB = 2.0

# A GPU with less memory of its own than this has a carve-out of the system's and shares the rest.
OWN_MEMORY_GB = 2.0


@dataclass(frozen=True)
class Ram:
    """The computer's memory in GB (2^30 bytes). ``free`` counts what caches would give back."""

    total: float
    free: float


@dataclass(frozen=True)
class Graphics:
    """A GPU. ``free`` is its own memory that nobody uses, None where nobody can say; GB throughout."""

    largest_buffer: float
    unified: bool
    free: float | None = None


def default_pledge_gb(gpu: Graphics | None, ram: Ram) -> float:
    """GB to lend, in half GB steps; 0 when this device should only ask."""
    if gpu is None:
        return 0.0
    lent = math.floor(min(_spare(gpu, ram), LARGEST_GB) / STEP_GB) * STEP_GB
    return lent if lent >= SMALLEST_GB else 0.0


def _spare(gpu: Graphics, ram: Ram) -> float:
    if not gpu.unified:
        return gpu.largest_buffer / 2 if gpu.free is None else gpu.free - KEPT_BY_DRIVER_GB
    within_free = ram.free - KEPT_FREE_GB
    by_rule = ram.total - max(KEPT_BY_SYSTEM_GB, ram.total * KEPT_BY_SYSTEM_SHARE)
    # The rule leaves a small computer nothing at all; the smallest models fit in a little of what is free.
    return min(within_free, max(by_rule, SMALLEST_GB))


def system_ram() -> Ram:
    memory = psutil.virtual_memory()
    return Ram(memory.total / GIB, memory.available / GIB)


def graphics(name: str, largest_buffer_bytes: int, software: bool) -> Graphics:
    """What can be found out about the GPU of that name. Asks the driver's tools: call it off the event loop."""
    largest = largest_buffer_bytes / GIB
    if software or platform.system() == "Darwin" or "intel" in name.lower():
        return Graphics(largest, unified=True)
    free = _nvidia_free() if "nvidia" in name.lower() else _amd_free(Path("/sys/class/drm"))
    if free is None and "amd" in name.lower():
        return Graphics(largest, unified=True)
    return Graphics(largest, unified=False, free=free)


def _nvidia_free() -> float | None:
    """GB free on the emptiest card, as the driver's own tool says."""
    command = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=3, check=True).stdout
        return max(float(line) for line in answer.split()) / 1024
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _amd_free(drm: Path) -> float | None:
    """GB free on the largest card that has memory of its own."""
    free: list[float] = []
    for total in drm.glob("card*/device/mem_info_vram_total"):
        try:
            own, used = (int(total.with_name(f"mem_info_vram_{what}").read_text()) / GIB for what in ("total", "used"))
        except (OSError, ValueError):
            continue
        if own >= OWN_MEMORY_GB:
            free.append(own - used)
    return max(free, default=None)
