"""Which tokens may come next in one answer, and which words are certain (spec: A-060, A-067)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from app.core.errors import PromptError
from app.engine.ops.mask import words_of

EVERYTHING = np.uint32(0xFFFFFFFF)


class Matcher:
    """An answer's place in its grammar. After a stop id everything may follow, for nobody reads it.

    Each method raises PromptError where the library fails, for an answer is never left unheld.
    """

    def __init__(self, size: int, stops: frozenset[int], inner: LLMatcher, *, done: bool = False) -> None:
        self._size = size
        self._stops = stops
        self._inner = inner
        self._done = done

    @property
    def done(self) -> bool:
        """Whether a stop id was accepted."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether the answer may end here."""
        return self._done or self._inner.is_accepting()

    def mask(self) -> NDArray[np.uint32]:
        """[words]: bit i % 32 of word i // 32 is set where id i may come next."""
        return self.masks(())[0]

    def masks(self, drafts: Sequence[int]) -> NDArray[np.uint32]:
        """[1 + drafts, words]: row i is the mask after the first i drafts. The place stays where it is.

        Rows after a draft that may not follow, or after a stop id, allow everything.
        """
        rows = np.full((1 + len(drafts), words_of(self._size)), EVERYTHING, np.uint32)
        ahead = self.copy() if drafts else self
        for row, draft in zip(rows, [*drafts, None], strict=True):
            if ahead._done:
                break
            ahead._fill(row)
            if draft is None or not row[draft // 32] >> np.uint32(draft % 32) & 1:
                break
            ahead.accept(draft)
        return rows

    def _fill(self, row: NDArray[np.uint32]) -> None:
        self._inner.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        self._check()

    def valid(self, drafts: Sequence[int]) -> int:
        """How many of the drafts may follow, from the first on. Any may after a stop id."""
        if self._done:
            return len(drafts)
        end = next((n for n, draft in enumerate(drafts) if draft in self._stops), len(drafts))
        held = self._inner.validate_tokens([*drafts[: end + 1]])
        self._check()
        return len(drafts) if held > end else held

    def accept(self, token: int) -> None:
        """Raises PromptError for a token that may not follow."""
        if self._done:
            return
        if not self._inner.consume_token(token):
            raise PromptError("The answer left the form that was asked for.", "Ask again.")
        self._done = token in self._stops
        if not self._done:
            self._check()

    def forced(self) -> tuple[int, ...]:
        """Tokens that spell what must come next; empty where there is a choice. Good as drafts."""
        return () if self._done else tuple(self._inner.compute_ff_tokens())

    def copy(self) -> Matcher:
        return Matcher(self._size, self._stops, self._inner.deep_copy(), done=self._done)

    def _check(self) -> None:
        if self._inner.is_error():
            raise PromptError("The form of the answer is too complex to hold.", "Simplify the schemas of the tools.")
