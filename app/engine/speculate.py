"""How many drafts a step should have, decided by measured tokens a second alone (spec: engine §9.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SPLIT_DEPTHS = (0, 3, 5, 7)
ALONE_DEPTHS = (0, 1, 2, 3, 5, 7)
FIRST_DEPTH = 3
FIRST_STEPS = 3
PROBE_EVERY = 16
LONGEST_WAIT = 64
"""Where no draft is right a probe is only a loss: those that change nothing come ever more seldom, down to this."""
NEWEST_WEIGHT = 0.4
FADING = 0.95
"""What is left of the weight of older drafts after a step."""
MOST_WEIGHT = 0.5
"""Of one draft, however long no other was seen in its place."""


@dataclass
class RightShares:
    """How often a step's first draft was right, the second where the first was, and so on."""

    _shares: list[float] = field(default_factory=list[float])
    _judged_at: list[int] = field(default_factory=list[int])

    def judged(self, drafts: int, accepted: int, step: int) -> None:
        """What became of a step's drafts; those after the first wrong one teach nothing."""
        for place in range(min(accepted + 1, drafts)):
            self._one(place, float(place < accepted), step)

    def _one(self, place: int, right: float, step: int) -> None:
        if place == len(self._shares):
            self._shares.append(right)
            self._judged_at.append(step)
        weight = min(1 - FADING ** (step - self._judged_at[place]), MOST_WEIGHT)
        self._shares[place] += weight * (right - self._shares[place])
        self._judged_at[place] = step

    def tokens(self, drafts: int) -> float:
        """What a step with so many drafts is expected to give. A place never seen is like the one before it."""
        expected = reached = share = 1.0
        for place in range(drafts):
            share = self._shares[place] if place < len(self._shares) else share
            reached *= share
            expected += reached
        return expected


@dataclass
class DepthControl:
    """Fed with every step but those of lookups; ``depths`` are tried, in rising order, 0 being a plain step.

    A step's tokens vary far more than its time, so every draft counts for all depths, and only times are each depth's.
    """

    depths: tuple[int, ...]
    _right: RightShares = field(default_factory=RightShares)
    _seconds: dict[int, float] = field(default_factory=dict[int, float])
    _steps: int = 0
    _probes: int = 0
    _since_probe: int = 0
    _wait: int = PROBE_EVERY

    def depth(self, most: int) -> int:
        """For the next step, which has room for ``most``: the usual one first, then each once, then the fastest and now
        and then its neighbours."""
        possible = [depth for depth in self.depths if depth <= most]
        if self._steps < FIRST_STEPS:
            return max((depth for depth in possible if depth <= FIRST_DEPTH), default=0)
        untried = [depth for depth in possible if depth not in self._seconds]
        if untried:
            return untried[0]
        best = self._best(possible)
        return self._neighbour(best, possible) if self._since_probe >= self._wait else best

    def _best(self, possible: Sequence[int]) -> int:
        """Of those tried."""
        tried = (depth for depth in possible if depth in self._seconds)
        return max(tried, key=lambda depth: self._right.tokens(depth) / self._seconds[depth], default=0)

    def _neighbour(self, depth: int, possible: Sequence[int]) -> int:
        at = possible.index(depth)
        beside = [possible[i] for i in (at - 1, at + 1) if 0 <= i < len(possible)]
        return beside[self._probes % len(beside)] if beside else depth

    def measured(self, depth: int, tokens: int, seconds: float) -> None:
        """A step that took ``seconds`` gave ``tokens``. Depths that a limit cut short teach nothing."""
        if depth not in self.depths or seconds <= 0:
            return
        probing = self._since_probe >= self._wait
        before = self._best(self.depths) if probing else None
        self._steps += 1
        self._since_probe += 1
        known = self._seconds.get(depth, seconds)
        self._seconds[depth] = (1 - NEWEST_WEIGHT) * known + NEWEST_WEIGHT * seconds
        self._right.judged(depth, tokens - 1, self._steps)
        if probing:
            self._probed(before)

    def _probed(self, before: int | None) -> None:
        in_vain = before == 0 and self._best(self.depths) == 0
        self._probes, self._since_probe = self._probes + 1, 0
        self._wait = min(2 * self._wait, LONGEST_WAIT) if in_vain else PROBE_EVERY
