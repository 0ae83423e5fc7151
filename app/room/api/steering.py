"""Keeps a program's answer to its form, and its reasoning within a budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.types import STEP_COLUMNS, Shaping

Masks = NDArray[np.uint32]


class Grammar(Protocol):
    """One answer's constraint, following it word by word (``prompt.grammar``)."""

    def masks(self, drafts: Sequence[int]) -> Masks:
        """[1 + n, words]: what may come next, and after each of the drafts."""
        ...

    def valid(self, drafts: Sequence[int]) -> int:
        """How many of the drafts may follow."""
        ...

    def forced(self) -> tuple[int, ...]:
        """What must follow, as far as it is certain."""
        ...

    def accept(self, token: int) -> None: ...


@dataclass
class ThinkBudget:
    """``left`` tokens of reasoning, then ``closing`` is said whatever the model would say; ``end`` closes it.

    ``thinking``: the block is open. Until then ``start`` opens it, and the first word that is neither that nor
    ``blank`` says that there is none.
    """

    left: int
    closing: tuple[int, ...]
    start: int | None
    end: int
    blank: Callable[[int], bool]
    thinking: bool
    pending: tuple[int, ...] = ()
    over: bool = False

    def said(self, token: int) -> None:
        if self.pending:
            self.pending = self.pending[1:] if token == self.pending[0] else self.pending
            self.over = not self.pending
        elif not self.over:
            self._reasoned(token)

    def _reasoned(self, token: int) -> None:
        if not self.thinking:
            self.thinking = token == self.start
            self.over = not self.thinking and not self.blank(token)
            return
        self.over = token == self.end
        self.left -= 1
        self.pending = self.closing if self.left <= 0 and not self.over else ()

    @property
    def most_guesses(self) -> int:
        """No word is chosen past the budget in the step that uses it up."""
        return STEP_COLUMNS - 1 if self.over else max(self.left - 1, 0)


class AskSteering:
    """``words`` are 32-bit words of a mask; ``holds``: a grammar holds the answer to its form.

    Its calls come from the event loop and from one thread beside it.
    """

    def __init__(
        self, grammar: Grammar | None, bias: Mapping[int, float], budget: ThinkBudget | None, words: int
    ) -> None:
        self.free = grammar is None and not bias and budget is None
        self.holds = grammar is not None
        self._grammar = grammar
        self._bias = bias
        self._budget = budget
        self._words = words
        self._lock = threading.Lock()

    def guesses(self, proposed: Sequence[int]) -> tuple[int, ...]:
        with self._lock:
            if self._pending:
                return self._pending[: STEP_COLUMNS - 1]
            most = STEP_COLUMNS - 1 if self._budget is None else self._budget.most_guesses
            if self._grammar is None:
                return tuple(proposed[:most])
            valid = tuple(proposed[: self._grammar.valid(proposed)])
            return (valid or self._grammar.forced())[:most]

    def shaping(self, guesses: Sequence[int]) -> Shaping | None:
        with self._lock:
            masks = self._grammar.masks(guesses) if self._grammar is not None else None
            if self._pending:
                masks = self._only_pending(masks, len(guesses))
        return Shaping(masks, self._bias or None) if masks is not None or self._bias else None

    @property
    def _pending(self) -> tuple[int, ...]:
        return self._budget.pending if self._budget is not None else ()

    def _only_pending(self, masks: Masks | None, guesses: int) -> Masks:
        """Of the columns that say the closing words each allows but its own."""
        found = np.full((guesses + 1, self._words), 0xFFFFFFFF, np.uint32) if masks is None else masks.copy()
        for row, token in enumerate(self._pending[: guesses + 1]):
            found[row] = 0
            found[row, token // 32] = np.uint32(1) << np.uint32(token % 32)
        return found

    def said(self, token: int) -> None:
        with self._lock:
            if self._grammar is not None:
                self._grammar.accept(token)
            if self._budget is not None:
                self._budget.said(token)
