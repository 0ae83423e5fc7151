"""Guesses of an answer's next tokens: a lookup in what was said, else a draft block or a draft model.

Spec: rooms §14.4-6.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from app.core.errors import PooledError
from app.engine.lookup import LookupIndex
from app.engine.speculate import DepthControl
from app.engine.types import STEP_COLUMNS, ColumnClass, Floats
from app.room.guessers import BlockGuesser, Guesser, ModelGuesser
from app.room.ports import Compute

log = logging.getLogger(__name__)

T = TypeVar("T")

FEWEST_LOOKED_UP = 2
"""A draft block or a draft model guesses better than a lookup that found less."""


class Source(IntEnum):
    """Where a token came from; the number is ``d`` on the wire. A draft model counts as a block, there too."""

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
    """One answer's guesses. ``verifies``: whether every device of the chain takes more than a lookup's few at once."""

    def __init__(
        self, compute: Compute, widths: LookupWidths, depth: DepthControl, ids: Sequence[int],
        *, start: int = 0, before: Floats | None = None, sequence: int = 0, verifies: bool = True,
    ) -> None:  # fmt: skip
        self.acceptance = Acceptance()
        self._widths = widths
        self._depth = depth
        self._ids = list(ids)
        self._index: LookupIndex | None = None
        self._guesser: Guesser | None = None
        self._bold = False
        if compute.drafts:
            self._guesser = BlockGuesser(compute, start, before, sequence)
        elif compute.draft_model and verifies:
            self._guesser = ModelGuesser(compute, self._ids, sequence)

    @property
    def idle(self) -> bool:
        """Whether there never is a guess."""
        return self._guesser is None and not self._widths.careful and not self._widths.bold

    def said(self, token: int) -> None:
        """One more token of the answer, the next to be verified."""
        if self._index is None:
            self._index = LookupIndex(self._ids)
        self._index.append(token)
        self._ids.append(token)

    async def learn(self, ids: Sequence[int], states: Floats | None, position: int, kind: ColumnClass) -> None:
        """Columns the trunk has computed, [n, hidden] states after them."""
        if self._guesser is not None and states is not None:
            await self._guarded(self._guesser.learn(ids, states, position, kind))

    async def prepare(self) -> None:
        """What guesses need once and no step is to be judged by, where there will be some."""
        looked_up = len(self._look_up(FEWEST_LOOKED_UP)) == FEWEST_LOOKED_UP
        if self._guesser is not None and not looked_up and self._depth.depth(STEP_COLUMNS - 1):
            await self._guarded(self._guesser.prepare())

    async def propose(self, token: int, position: int, most: int) -> Drafts:
        """At most ``most`` guesses of what follows ``token``, which stands at ``position``."""
        if most < 1:
            return Drafts()
        found = self._look_up(most)
        if len(found) >= (FEWEST_LOOKED_UP if self._guesser else 1):
            return Drafts(tuple(found), Source.LOOKUP)
        count = self._depth.depth(most)
        if self._guesser is None or count == 0:
            return Drafts()
        guesses = await self._guarded(self._guesser.guesses(token, position, count))
        if not guesses:
            self._guesser = None
            return Drafts()
        return Drafts(tuple(guesses), Source.BLOCK)

    def _look_up(self, most: int) -> list[int]:
        most = min(most, self._widths.bold if self._bold else self._widths.careful)
        return self._index.drafts(most) if self._index is not None and most > 0 else []

    async def settle(self) -> None:
        """The state is to be kept, or the answer ends."""
        if self._guesser is not None:
            await self._guarded(self._guesser.settle())

    async def _guarded(self, work: Awaitable[T]) -> T | None:
        """Drafts are a help only: whatever ails who gives them, the answer goes on without it."""
        try:
            return await work
        except PooledError as error:
            log.warning("no more drafts in this answer: %s", error)
            self._guesser = None
            return None

    def ended(self, drafts: Drafts, accepted: int, seconds: float) -> None:
        """How a step went that verified ``drafts`` in ``seconds``."""
        count, judged = len(drafts.tokens), min(accepted + 1, len(drafts.tokens))
        looked_up = accepted if drafts.source is Source.LOOKUP else 0
        self.acceptance = self.acceptance.plus(Acceptance(count, judged, accepted, looked_up))
        if drafts.source is Source.LOOKUP:
            self._bold = accepted == count
        elif self._guesser is not None and (drafts.source is Source.BLOCK) == (count > 0):
            # A plain step, or one with guesses; not one whose guesses could not be used.
            self._depth.measured(count, accepted + 1, seconds)
