"""How many threads share a row."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.device import Caps


@dataclass(frozen=True)
class Order:
    """``lanes`` threads share a row: that fixes the order of summation.

    The rest is placement: ``teams`` of lanes a workgroup, ``rows`` a team.
    """

    lanes: int
    teams: int
    rows: int


def order_for(rows: int, columns: int, caps: Caps) -> Order:
    """By the matrix alone, so that every width and every device of a kind sums alike."""
    if caps.software:
        return Order(8, 4, 4)
    if rows >= 8192:
        return Order(32, 4, 2)
    if 4096 < columns <= 8192:
        return Order(64, 2, 2) if rows >= 4096 else Order(64, 1, 1)
    return Order(32, 4, 1)
