"""A bound on the work that the schemas of one ask may cause, and how a schema is refused."""

from __future__ import annotations

from typing import NoReturn

from app.core.errors import PromptError

MOST_STEPS = 200_000
"""About a second of work. A thousand common tools take a tenth of it."""


def refuse(owner: str, why: str, path: str = "") -> NoReturn:
    """Raises PromptError. ``owner`` names the schema: 'The tool "search"'."""
    where = f" (at {path})" if path else ""
    raise PromptError(f"{owner} {why}{where}.", "Change the schema, or leave that part out.")


class Steps:
    """What is left of the work. References and alternatives multiply, so their number says nothing of it."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._left = most

    def take(self, owner: str, count: int = 1) -> None:
        """Raises PromptError naming ``owner`` when nothing is left."""
        self._left -= count
        if self._left < 0:
            refuse(owner, 'has too many combinations of "$ref", "anyOf", "oneOf" and "allOf"')
