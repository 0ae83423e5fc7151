"""Where each sequence stands, and how far a recurrent state can still be taken back."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import StateError


@dataclass(frozen=True)
class Standing:
    """Positions below ``end`` were computed; the recurrent states hold those below ``committed``.

    The step columns between the two are replayed from their projections, as many as are kept.
    """

    committed: int = 0
    end: int = 0

    def replay(self, position: int) -> int:
        """Columns to replay before one at ``position``; StateError if the state is already past it."""
        if position == 0:
            return 0
        if not self.committed <= position <= self.end:
            raise StateError(
                f"Position {position} cannot follow: this sequence can go on from {self.committed} to {self.end}.",
                "Start again from the beginning or from a checkpoint.",
            )
        return position - self.committed

    @staticmethod
    def stepped(position: int, count: int) -> Standing:
        """After a step of ``count`` columns."""
        return Standing(position, position + count)

    @staticmethod
    def prompted(position: int, count: int) -> Standing:
        """After a prompt chunk."""
        return Standing(position + count, position + count)


UNKNOWN = Standing(-1, -1)
"""After a pass that failed midway: only position 0 or a saved state can follow."""
