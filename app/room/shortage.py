"""What a room that is too small says: how much is missing, and who could give it (spec: rooms §12.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.units import GIB

MOST_NAMES = 2
ROUNDING = 1e-9


def gb_up(size: float) -> float:
    """GB of ``size`` bytes, rounded up to a tenth."""
    return math.ceil(size / GIB * 10 - ROUNDING) / 10


@dataclass(frozen=True)
class Shortage:
    """``bytes`` missing; ``helpers`` are devices that could close the gap alone, smallest raise first."""

    bytes: float
    helpers: tuple[int, ...] = ()

    @property
    def gb(self) -> float:
        return gb_up(self.bytes)


def shortage(raises: Sequence[float], short: float, spare_gb: Sequence[float]) -> Shortage:
    """``raises`` are bytes each device alone would add, ``spare_gb`` what each could still lend."""
    finite = [i for i, extra in enumerate(raises) if math.isfinite(extra)]
    able = [i for i in finite if gb_up(raises[i]) <= spare_gb[i]]
    able.sort(key=lambda i: (raises[i], i))
    return Shortage(raises[able[0]] if able else short, tuple(able[:MOST_NAMES]))
