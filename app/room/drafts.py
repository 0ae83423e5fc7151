"""How many tokens a lookup may copy, and which chains verify them (spec: rooms §14.5)."""

from __future__ import annotations

from collections.abc import Iterable

from app.room.meta import Meta

CAUTIOUS = 3
BOLD = 7


def chain_verifies(chain: Iterable[Meta]) -> bool:
    """Whether every device of the chain takes verify frames of any width."""
    return all(meta.dspec >= 1 for meta in chain)
