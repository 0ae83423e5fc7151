"""The one allocator of GPU buffers: it refuses past the pledge and knows what every byte is for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import wgpu

from app.core.errors import OutOfMemory
from app.engine.device import Gpu

ALIGN = 256
UPLOAD_CHUNK = 16 << 20
_SUBMITTED = 1 << 20

_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_READBACK = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


def aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


@dataclass(frozen=True)
class Slice:
    """A part of a buffer that can be bound: ``offset`` is a multiple of 256, ``size`` of 4."""

    buffer: Any
    offset: int
    size: int
    owner: Allocator | None

    @property
    def triple(self) -> tuple[Any, int, int]:
        return self.buffer, self.offset, self.size


@dataclass(frozen=True)
class Region:
    """``size`` bytes at ``offset`` of a slice."""

    slice: Slice
    offset: int
    size: int


class Allocator:
    """Creates and frees buffers within ``pledge`` bytes. ``peak`` is the most ever held at once."""

    def __init__(self, gpu: Gpu, pledge: int) -> None:
        self.gpu = gpu
        self.pledge = pledge
        self.peak = 0
        self.freed = False
        self._buffers: list[tuple[Any, int, str]] = []

    @property
    def used(self) -> int:
        return sum(size for _, size, _ in self._buffers)

    def by_purpose(self) -> dict[str, int]:
        totals: Counter[str] = Counter()
        for _, size, purpose in self._buffers:
            totals[purpose] += size
        return dict(totals)

    def buffer(self, size: int, purpose: str) -> Slice:
        """A zeroed storage buffer of at least ``size`` bytes; OutOfMemory past the pledge or the driver's limit."""
        size = aligned(max(size, ALIGN))
        if size > self.gpu.caps.binding:
            raise OutOfMemory(
                f"The {purpose} would need a buffer of {_mb(size)}; this GPU allows {_mb(self.gpu.caps.binding)}.",
                "Choose a shorter context.",
            )
        return Slice(self._create(size, _USAGE, purpose), 0, size, self)

    def staging(self, size: int) -> Any:
        """A buffer the processor can read back."""
        return self._create(aligned(size), _READBACK, "readback")

    def chunk(self, size: int, purpose: str) -> Any:
        """A raw buffer to be cut into slices."""
        return self._create(size, _USAGE, purpose)

    def free(self, part: Slice) -> None:
        """Gives one buffer back; nothing may use it afterwards."""
        for i, (buffer, _, _) in enumerate(self._buffers):
            if buffer is part.buffer:
                self._buffers.pop(i)
                buffer.destroy()
                return

    def free_all(self) -> None:
        """Gives every byte back to the driver; nothing may use the buffers afterwards."""
        for buffer, _, _ in self._buffers:
            buffer.destroy()
        self._buffers.clear()
        self.freed = True

    def _create(self, size: int, usage: int, purpose: str) -> Any:
        self.gpu.check()
        if self.used + size > self.pledge:
            raise OutOfMemory(
                f"The {purpose} would take {_mb(self.used + size)} of the {_mb(self.pledge)} this device lends.",
                "Lend more memory, choose a shorter context or bring another device.",
            )
        try:
            buffer = self.gpu.device.create_buffer(size=size, usage=usage)
        except (wgpu.GPUError, RuntimeError) as error:
            raise OutOfMemory(
                f"{self.gpu.info.name} has no {_mb(size)} left for the {purpose}.",
                "Close other programs that use the GPU, or lend less memory.",
            ) from error
        self._buffers.append((buffer, size, purpose))
        self.peak = max(self.peak, self.used)
        return buffer


class Meter:
    """Counts what an ``Allocator`` would be asked for."""

    def __init__(self) -> None:
        self._totals: Counter[str] = Counter()

    def buffer(self, size: int, purpose: str) -> Slice:
        """A slice of nothing."""
        size = aligned(max(size, ALIGN))
        self._totals[purpose] += size
        return Slice(None, 0, size, None)

    def by_purpose(self) -> dict[str, int]:
        return dict(self._totals)


class Buffers(Protocol):
    """Where buffers come from: an ``Allocator``, or a ``Meter`` that only counts."""

    def buffer(self, size: int, purpose: str) -> Slice: ...


class Arena:
    """Packs many slices into few large buffers within the adapter's limits."""

    def __init__(self, allocator: Allocator, sizes: list[int], purpose: str) -> None:
        self._allocator = allocator
        limit = allocator.gpu.caps.buffer // ALIGN * ALIGN
        self._chunks = [allocator.chunk(size, purpose) for size in _bins([aligned(s) for s in sizes], limit)]
        self._ends = [chunk.size for chunk in self._chunks]
        self._fill = [0] * len(self._chunks)

    def take(self, size: int) -> Slice:
        """The next free slice; sizes must come in the order they were announced."""
        need = aligned(size)
        for i, chunk in enumerate(self._chunks):
            if self._fill[i] + need <= self._ends[i]:
                offset = self._fill[i]
                self._fill[i] += need
                return Slice(chunk, offset, -(-size // 4) * 4, self._allocator)
        raise AssertionError("more was taken from an arena than was announced")


def _bins(sizes: list[int], limit: int) -> list[int]:
    bins: list[int] = []
    for size in sizes:
        for i, filled in enumerate(bins):
            if filled + size <= limit:
                bins[i] += size
                break
        else:
            bins.append(size)
    return bins


def upload(gpu: Gpu, target: Slice, data: np.ndarray, offset: int = 0) -> None:
    """Writes ``data`` from byte ``offset`` on, in pieces, each handed to the driver, so that staging never piles up."""
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    if flat.size % 4:
        flat = np.pad(flat, (0, -flat.size % 4))
    gpu.check()
    for start in range(0, flat.size, UPLOAD_CHUNK):
        piece = flat[start : start + UPLOAD_CHUNK]
        gpu.device.queue.write_buffer(target.buffer, target.offset + offset + start, piece)
        if flat.size >= _SUBMITTED:
            gpu.device.queue.submit([])


def _mb(size: int) -> str:
    return f"{size / 2**30:.1f} GB" if size >= 2**30 else f"{size / 2**20:.1f} MB"
