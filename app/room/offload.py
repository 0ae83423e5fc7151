"""Parking routed experts in system RAM when pledges alone do not hold a model (spec: rooms §12.8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.units import GIB
from app.models.table import ModelRecord

SCALES_PER_WEIGHT = 16
FEWEST_SLOTS = 16
GOOD_SLOTS = 64
ALIGN = 256
TABLE_BYTES = 4096

Slices = tuple[int, ...]


@dataclass(frozen=True)
class ExpertSizes:
    """Bytes of one layer's routed experts. ``slices`` has six per layer, for one expert each."""

    count: int
    freed: int
    slices: tuple[Slices, ...]

    @property
    def largest_slice(self) -> int:
        return max(max(row) for row in self.slices)

    def parked(self, lo: int, hi: int) -> int:
        return sum(sum(row) for row in self.slices[lo:hi]) * self.count

    def region(self, lo: int, hi: int) -> int:
        """Prefill workspace for the experts of any one of these layers."""
        rows = self.slices[lo:hi]
        return sum(max(column) for column in zip(*rows, strict=True)) * self.count if rows else 0


def expert_sizes(record: ModelRecord) -> ExpertSizes | None:
    """None for a model without routed experts."""
    experts = record.experts
    if experts is None:
        return None
    weights = experts.width * record.hidden
    half, scale = weights // 2, weights // SCALES_PER_WEIGHT
    narrow: Slices = (half, scale, half, scale, half, scale)
    wide: Slices = (half, scale, half, scale, weights, scale)
    wide_rows = min(experts.wide_down_layers, record.layers)
    rows = (wide,) * wide_rows + (narrow,) * (record.layers - wide_rows)
    return ExpertSizes(experts.count, experts.layer_bytes, rows)


@dataclass(frozen=True)
class Parking:
    """What a device parks: the last ``layers`` of its range, with ``slots`` experts cached on the GPU."""

    layers: int
    vram_bytes: int
    ram_bytes: int
    slots: int
    lo: int = 0
    hi: int = 0


@dataclass(frozen=True)
class Lender:
    """A device's bytes for layers and for parked experts. ``first`` is the earliest its range can start."""

    space: float
    ram: float
    first: int
    exact: bool


@dataclass(frozen=True)
class Parker:
    """The rule for one model at one context."""

    layers: int
    layer_bytes: float
    experts: ExpertSizes

    def need(self, lender: Lender, n: int, lo: int | None = None) -> Parking | None:
        """The least parking with which ``n`` layers fit; None when no amount does."""
        for m in range(1, n + 1):
            parking = self.parking(lender, n, m, lo)
            if self.ram_need(parking.ram_bytes, m) > lender.ram:
                return None
            if parking.slots >= FEWEST_SLOTS:
                return parking
        return None

    def parking(self, lender: Lender, n: int, m: int, lo: int | None = None) -> Parking:
        """``lo`` fixes the range's start; without it the worst start is assumed."""
        park, region = self._worst(lender, n, m) if lo is None else self._at(lo + n - m, m)
        vram = math.floor(lender.space - (n * self.layer_bytes - m * self.experts.freed))
        per_expert = park / self.experts.count
        slots = math.floor((vram - region) / per_expert) if per_expert else 0
        end = (lo or 0) + n
        return Parking(m, vram, park, min(self.experts.count, slots), end - m, end)

    def _at(self, start: int, m: int) -> tuple[int, int]:
        return self.experts.parked(start, start + m), self.experts.region(start, start + m)

    def _worst(self, lender: Lender, n: int, m: int) -> tuple[int, int]:
        if lender.exact:
            return self._at(n - m, m)
        first = min(lender.first + n, self.layers) - m
        starts = range(first, self.layers - m + 1)
        return max(self.experts.parked(s, s + m) for s in starts), self.experts.region(first, self.layers)

    def ram_need(self, parked: int, m: int) -> int:
        buffers = -(-parked // GIB) + 1
        return parked + buffers * self.experts.largest_slice + (6 * m + buffers) * ALIGN + TABLE_BYTES

    def most(self, lender: Lender, plain: int) -> int:
        """Most layers with parking, at least the plain cap."""
        n, limit = plain, self.layers if lender.exact else self.layers - lender.first
        while n < limit and self.need(lender, n + 1):
            n += 1
        return n

    def settled(self, lender: Lender, n: int, lo: int) -> Parking | None:
        """The parking dealt: as much more than needed as makes the cache good and RAM allows."""
        best = self.need(lender, n, lo)
        while best is not None and best.slots < GOOD_SLOTS and best.layers < n:
            more = self.parking(lender, n, best.layers + 1, lo)
            if self.ram_need(more.ram_bytes, more.layers) > lender.ram:
                break
            best = more
        return best


def share_beyond_caps(layers: int, plain: Sequence[int], most: Sequence[int]) -> tuple[int, ...]:
    """Everyone keeps its plain cap; the rest goes to devices that park, in proportion to their extra."""
    base = [min(cap, layers) for cap in plain]
    left = layers - sum(base)
    extra = [max(0, top - cap) for top, cap in zip(most, base, strict=True)]
    total = sum(extra)
    if left <= 0 or total <= 0:
        return tuple(base)
    shares = [left * e / total for e in extra]
    given = [min(math.floor(share), e) for share, e in zip(shares, extra, strict=True)]
    order = sorted(range(len(extra)), key=lambda i: (math.floor(shares[i]) - shares[i], i))
    while sum(given) < left:
        for i in order:
            if sum(given) < left and given[i] < extra[i]:
                given[i] += 1
    return tuple(b + g for b, g in zip(base, given, strict=True))
