"""Sharing layers out: by memory, or so that a word takes the least time (spec: rooms §12.5, §12.6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PHONE_COST = 20.0
UNMEASURED_COST = 1.5
SMALLEST_WEIGHT = 1e-9


@dataclass(frozen=True)
class Split:
    """Layers a device in device order. ``short`` layers have no place; then nothing is assigned."""

    assigned: tuple[int, ...]
    short: int = 0

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Half-open, consecutive in device order."""
        ends = [sum(self.assigned[: i + 1]) for i in range(len(self.assigned))]
        return tuple((end - n, end) for end, n in zip(ends, self.assigned, strict=True))

    @property
    def used(self) -> tuple[int, ...]:
        return tuple(i for i, n in enumerate(self.assigned) if n > 0)


def split_by_memory(layers: int, weights: Sequence[float], most: Sequence[float]) -> Split:
    """Shares in proportion to ``weights``, at most ``most`` each, one at least where there is room."""
    caps = [max(0, math.floor(cap)) for cap in most]
    scaled = _scaled(weights, caps)
    assigned = [0] * len(caps)
    for _ in range(len(caps) + 2):
        left = layers - sum(assigned)
        if left <= 0:
            break
        _share_round(left, scaled, caps, assigned)
    _one_each(assigned, caps)
    return Split(tuple(assigned), layers - sum(assigned))


def _scaled(weights: Sequence[float], caps: Sequence[int]) -> list[float]:
    """Weights relative to the largest; a device with room never weighs nothing."""
    largest = max([0.0, *weights])
    if largest <= 0:
        return [1.0 if cap else 0.0 for cap in caps]
    pairs = zip(weights, caps, strict=True)
    return [max(weight / largest, SMALLEST_WEIGHT) if cap else 0.0 for weight, cap in pairs]


def _share_round(left: int, weights: list[float], caps: list[int], assigned: list[int]) -> None:
    """Floors of the proportional shares, then single layers to the largest fractions."""
    open_to = [i for i, cap in enumerate(caps) if assigned[i] < cap]
    total = sum(weights[i] for i in open_to)
    if total <= 0:
        return
    shares = {i: left * weights[i] / total for i in open_to}
    for i, share in shares.items():
        given = min(math.floor(share), caps[i] - assigned[i])
        assigned[i] += given
        left -= given
    by_fraction = sorted(open_to, key=lambda i: (math.floor(shares[i]) - shares[i], i))
    for i in [i for i in by_fraction if assigned[i] < caps[i]][:left]:
        assigned[i] += 1


def _one_each(assigned: list[int], caps: list[int]) -> None:
    """Devices that got none take one from the largest share; the model host may take its last."""
    for i, cap in enumerate(caps):
        if cap < 1 or assigned[i] > 0:
            continue
        giver = max(range(len(assigned)), key=lambda j: assigned[j])
        if assigned[giver] > 1 or (i == 0 and assigned[giver] > 0):
            assigned[giver] -= 1
            assigned[i] += 1


def split_for_speed(
    layers: int,
    caps: Sequence[float],
    ms_per_layer: Sequence[float | None] = (),
    phones: Sequence[bool] = (),
) -> Split:
    """Fewest and fastest devices: one layer on the model host, then whole caps in order of cost."""
    whole = [max(0, math.floor(cap)) for cap in caps]
    lacking = max(layers - sum(whole), 1 if not whole or whole[0] < 1 else 0, 0)
    if lacking:
        return Split((0,) * len(whole), lacking)
    assigned = [1, *[0] * (len(whole) - 1)]
    for i in _cheapest_first(whole, ms_per_layer, phones):
        assigned[i] += min(whole[i] - assigned[i], layers - sum(assigned))
    return Split(tuple(assigned))


def _cheapest_first(caps: Sequence[int], ms_per_layer: Sequence[float | None], phones: Sequence[bool]) -> list[int]:
    measured = {i: ms for i, ms in enumerate(ms_per_layer) if ms and ms > 0}
    unknown = UNMEASURED_COST * max(measured.values()) if measured else 1.0
    guesses = [unknown * (PHONE_COST if i < len(phones) and phones[i] else 1.0) for i in range(len(caps))]
    costs = [measured.get(i, guess) for i, guess in enumerate(guesses)]
    return sorted(range(len(caps)), key=lambda i: (costs[i], i != 0, -caps[i], i))
