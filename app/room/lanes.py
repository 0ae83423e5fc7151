"""The places a chain's caches have for conversations: which is free, what each holds, and which suits a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.room.checkpoints import WORTH_SAVING, live_start
from app.room.held import Held
from app.room.laps import LapFailed


@dataclass(eq=False)
class Lane:
    """One sequence of every device. ``held`` is what its caches hold between answers, nothing while one is written.

    ``shared`` is how much of that other conversations begin with as well, None for the people's only one.
    ``states`` are slots of saved states: those the last answer here came from, and those saved of it.
    """

    sequence: int = 0
    held: Held = field(default_factory=Held)
    shared: int | None = 0
    busy: bool = False
    used: int = 0
    states: set[int] = field(default_factory=set[int])
    _lost: LapFailed | None = None

    def lose(self, error: LapFailed) -> None:
        """The caches are gone; an answer that is written here must not take another deal's for them."""
        self._lost, self.held = error, Held()

    def check(self) -> None:
        """Raises what the lane was lost with."""
        if self._lost is not None:
            raise self._lost

    def worth(self, ids: Sequence[int], *, hybrid: bool) -> int:
        """How much of ``ids`` need not be read here; a few words that all prompts begin with are worth no lane."""
        start = live_start(self.held, ids, hybrid=hybrid)
        return start if start > WORTH_SAVING or start >= self.held.end - 1 else 0

    def another(self, ids: Sequence[int], shared: int | None) -> bool:
        """Whether a prompt belongs to another conversation than the one that is held, by some words of its own."""
        if self.shared is None or shared is None:
            return self.shared is not shared
        return self.held.fed.common(ids) <= shared + WORTH_SAVING


class Lanes:
    """Those of one deal."""

    def __init__(self, count: int) -> None:
        self._all = [Lane(sequence) for sequence in range(count)]
        self._clock = 0
        self._lost: LapFailed | None = None

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._all)

    @property
    def lost(self) -> bool:
        return self._lost is not None

    @property
    def latest(self) -> Held:
        """What the lane that was used last holds."""
        return max(self._all, key=lambda lane: lane.used).held if self._all else Held()

    def take(self, ids: Sequence[int], *, hybrid: bool, saved: int) -> Lane:
        """The free lane with the longest usable beginning of ``ids``, of equal ones the least recently used.

        Where a saved state has ``saved`` of them no shorter beginning counts. Raises LapFailed after a loss.
        """
        if self._lost is not None:
            raise self._lost
        free = [lane for lane in self._all if not lane.busy]
        best = max(free, key=lambda lane: (max(saved, lane.worth(ids, hybrid=hybrid)), -lane.used))
        self._clock += 1
        best.busy, best.used = True, self._clock
        return best

    def lose(self, error: LapFailed) -> None:
        """Everything that is held is gone, also under the answers that are being written."""
        self._lost = error
        for lane in self._all:
            lane.lose(error)
