"""Guesses of an answer's next tokens: a lookup in what was said, else the model's draft block (spec: rooms §14.4-6)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np

from app.core.errors import PooledError
from app.engine.lookup import LookupIndex
from app.engine.speculate import DepthControl
from app.engine.types import ColumnClass, Floats
from app.room.ports import Compute

log = logging.getLogger(__name__)

T = TypeVar("T")

FEWEST_LOOKED_UP = 2
"""A draft block guesses better than a lookup that found less."""


class Source(IntEnum):
    """Where a token came from; the number is ``d`` on the wire."""

    SAMPLED = 0
    BLOCK = 1
    LOOKUP = 2


@dataclass(frozen=True)
class Drafts:
    """Tokens to be verified; none of them reaches anybody before the model has chosen it."""

    tokens: tuple[int, ...] = ()
    source: Source = Source.SAMPLED


@dataclass(frozen=True)
class LookupWidths:
    """Most tokens of a lookup: ``careful`` at first, ``bold`` after a run that was accepted whole; 0 for none."""

    careful: int = 0
    bold: int = 0


@dataclass
class Acceptance:
    """What became of an answer's drafts. ``looked_up`` tokens of the answer came from lookups.

    ``judged`` ones the model has compared with its own choice: none after the first wrong one of a step.
    """

    drafted: int = 0
    judged: int = 0
    accepted: int = 0
    looked_up: int = 0

    @property
    def share(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None

    def plus(self, other: Acceptance) -> Acceptance:
        return Acceptance(
            self.drafted + other.drafted,
            self.judged + other.judged,
            self.accepted + other.accepted,
            self.looked_up + other.looked_up,
        )


class Drafter:
    """One answer's guesses. The draft block is shown every column the trunk has computed, with its true state."""

    def __init__(
        self, compute: Compute, widths: LookupWidths, depth: DepthControl, ids: Sequence[int],
        *, start: int = 0, before: Floats | None = None, sequence: int = 0,
    ) -> None:  # fmt: skip
        self.acceptance = Acceptance()
        self._compute = compute
        self._widths = widths
        self._depth = depth
        self._ids = ids
        self._index: LookupIndex | None = None
        self._block = compute.drafts
        self._before = before
        self._shown = start
        self._bold = False
        self._sequence = sequence

    def said(self, token: int) -> None:
        """One more token of the answer, the next to be verified."""
        if self._index is None:
            self._index = LookupIndex(self._ids)
        self._index.append(token)

    async def learn(self, ids: Sequence[int], states: Floats | None, position: int, kind: ColumnClass) -> None:
        """Columns the trunk has computed, [n, hidden] states after them; what the block has seen truly is left out."""
        if not self._block or states is None:
            return
        first = np.zeros_like(states[0]) if self._before is None else self._before
        before = np.concatenate([first[None], states[:-1]])
        new = min(max(self._shown - position, 0), len(ids))
        self._before, self._shown = states[-1], position + len(ids)
        if new < len(ids):
            shown = self._compute.learn(ids[new:], before[new:], position + new, kind, self._sequence)
            await self._guarded(shown)

    async def propose(self, token: int, position: int, most: int) -> Drafts:
        """At most ``most`` guesses of what follows ``token``, which stands at ``position``."""
        if most < 1:
            return Drafts()
        found = self._look_up(min(most, self._widths.bold if self._bold else self._widths.careful))
        if len(found) >= (FEWEST_LOOKED_UP if self._block else 1):
            return Drafts(tuple(found), Source.LOOKUP)
        if not self._block or self._before is None:
            return Drafts()
        count = min(most, self._depth.depth)
        guesses = await self._guarded(self._compute.draft(token, self._before, position, count, self._sequence))
        self._shown = position + 1
        return Drafts(tuple(guesses or ()), Source.BLOCK)

    def _look_up(self, most: int) -> list[int]:
        return self._index.drafts(most) if self._index is not None and most > 0 else []

    async def _guarded(self, work: Awaitable[T]) -> T | None:
        """Drafts are a help only: whatever ails the draft block, the answer goes on without it."""
        try:
            return await work
        except PooledError as error:
            log.warning("no more drafts from the draft block: %s", error)
            self._block = False
            return None

    def ended(self, drafts: Drafts, accepted: int, seconds: float) -> None:
        """How a step went that verified ``drafts`` in ``seconds``."""
        count, judged = len(drafts.tokens), min(accepted + 1, len(drafts.tokens))
        looked_up = accepted if drafts.source is Source.LOOKUP else 0
        self.acceptance = self.acceptance.plus(Acceptance(count, judged, accepted, looked_up))
        if drafts.source is Source.LOOKUP:
            self._bold = accepted == count
        elif drafts.source is Source.BLOCK:
            self._depth.measured(count, accepted + 1, seconds)
