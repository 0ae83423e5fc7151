"""What all devices' caches hold, and how far back it can be taken without a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.engine.types import ColumnClass, Floats
from app.room.segments import Fed


@dataclass(frozen=True)
class Held:
    """``states`` [n, hidden] are the trunk's at the last n positions, where they are known.

    A recurrent model can be taken back to ``floor``: over columns of its last step, never over a prompt's.
    """

    fed: Fed = field(default_factory=Fed)
    floor: int = 0
    states: Floats | None = None

    @property
    def end(self) -> int:
        return len(self.fed.ids)

    def before(self, position: int) -> Floats | None:
        """The trunk's state just before ``position`` [hidden], if it is known."""
        if self.states is None:
            return None
        at = position - 1 - (self.end - len(self.states))
        return self.states[at] if 0 <= at < len(self.states) else None

    def grown(self, ids: Sequence[int], kind: ColumnClass, states: Floats | None, *, floor: int | None = None) -> Held:
        """With columns that were computed; ``floor`` where some of them can be taken back."""
        fed = self.fed.grown(ids, kind)
        return Held(fed, len(fed.ids) if floor is None else floor, states)

    def known(self, states: Floats) -> Held:
        """With the states of the last positions, which came later."""
        return replace(self, states=states)

    def settled(self) -> Held:
        """After a save: what is saved cannot be taken back any more."""
        return replace(self.cut(self.end), floor=self.end)

    def cut(self, end: int) -> Held:
        """Taken back to ``end``."""
        last = self.before(end)
        return Held(self.fed.cut(end), min(self.floor, end), None if last is None else last[None])
