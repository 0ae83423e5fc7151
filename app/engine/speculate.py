"""How many drafts a step should have, decided by measured tokens a second alone (spec: engine §9.5)."""

from __future__ import annotations

from dataclasses import dataclass, field

SPLIT_DEPTHS = (3, 5, 7)
ALONE_DEPTHS = (1, 2, 3, 5, 7)
FIRST_DEPTH = 3
FIRST_STEPS = 3
PROBE_EVERY = 16
NEWEST_WEIGHT = 0.4


@dataclass
class DepthControl:
    """Fed with every step whose drafts came from the draft block; ``depths`` are tried, in rising order."""

    depths: tuple[int, ...]
    _speeds: dict[int, float] = field(default_factory=dict[int, float])
    _steps: int = 0
    _probes: int = 0

    @property
    def depth(self) -> int:
        """For the next step: the usual one first, then each once, then the fastest and now and then its neighbours."""
        if self._steps < FIRST_STEPS:
            return FIRST_DEPTH
        untried = [depth for depth in self.depths if depth not in self._speeds]
        if untried:
            return untried[0]
        best = max(self.depths, key=lambda depth: self._speeds[depth])
        return self._neighbour(best) if self._steps % PROBE_EVERY == 0 else best

    def _neighbour(self, depth: int) -> int:
        at = self.depths.index(depth)
        beside = [self.depths[i] for i in (at - 1, at + 1) if 0 <= i < len(self.depths)]
        return beside[self._probes % len(beside)] if beside else depth

    def measured(self, depth: int, tokens: int, seconds: float) -> None:
        """A step that took ``seconds`` gave ``tokens``. Depths that a limit cut short teach nothing."""
        if depth not in self.depths or seconds <= 0:
            return
        self._probes += self._steps % PROBE_EVERY == 0
        self._steps += 1
        speed = tokens / seconds
        known = self._speeds.get(depth, speed)
        self._speeds[depth] = (1 - NEWEST_WEIGHT) * known + NEWEST_WEIGHT * speed
