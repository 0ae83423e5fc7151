"""Drafts for a split dense model: lookup only, while all devices verify wide frames (spec: rooms §14.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.engine.lookup import lookup_drafts
from app.room.meta import Meta

CAUTIOUS = 3
BOLD = 7


def chain_verifies(chain: Iterable[Meta]) -> bool:
    """Whether every device of the chain takes verify frames of any width."""
    return all(meta.dspec >= 1 for meta in chain)


def dense_drafts(context: Sequence[int], most: int, *, last_run_accepted: bool) -> list[int]:
    """``context`` ends with the token to verify; the run grows once a whole run was accepted."""
    return lookup_drafts(context, min(most, BOLD if last_run_accepted else CAUTIOUS))
