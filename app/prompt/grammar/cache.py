"""Grammars once compiled, the last used ones kept, so that the second turn of an agent compiles nothing (spec: A-067).

The library keeps the masks of each grammar's states with it, so they are kept too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from llguidance import LLMatcher

KEPT = 16


class Compiled:
    """Safe to use from several threads; what fails to compile is not kept. ``count``: how many were compiled."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = Lock()
        self.count = 0

    def get(self, key: str, compiled: Callable[[], LLMatcher]) -> LLMatcher:
        """A copy of the grammar under ``key``, at its beginning."""
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None:
                kept = compiled()
                self.count += 1
            self._kept[key] = kept
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return kept.deep_copy()
