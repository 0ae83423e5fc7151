"""What may be said next: a hand on the model's choices that the generation knows nothing else about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.engine.types import Shaping


class Steering(Protocol):
    """Follows one answer, word by word."""

    @property
    def free(self) -> bool:
        """Whether it never interferes."""
        ...

    def guesses(self, proposed: Sequence[int]) -> tuple[int, ...]:
        """Those of the drafts that may follow, or others that must."""
        ...

    def shaping(self, guesses: Sequence[int]) -> Shaping | None:
        """For the next word and for those after each of ``guesses``. May be called off the event loop."""
        ...

    def said(self, token: int) -> None: ...


class Free:
    """Anything may be said."""

    free = True

    def guesses(self, proposed: Sequence[int]) -> tuple[int, ...]:
        return tuple(proposed)

    def shaping(self, guesses: Sequence[int]) -> Shaping | None:
        return None

    def said(self, token: int) -> None:
        """Nothing follows from it."""
