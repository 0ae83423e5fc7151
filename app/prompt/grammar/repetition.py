"""How often a pattern repeats what it repeats already, so that one too large is refused when its schema is read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.prompt.grammar.pattern import pieces

MOST_REPEATED = 2_000
"""Within it the grammar library held every pattern that was tried; at 2,500 some failed in the middle of an answer."""

_COUNT = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")


def too_repeated(pattern: str) -> bool:
    """Whether counts within counts multiply to more than ``MOST_REPEATED``. A single count may be any."""
    return any(product > MOST_REPEATED for product in _products(pattern))


def _products(pattern: str) -> Iterator[int]:
    """For everything repeated that has repetitions in it: how often these come in all."""
    groups, item = [0], 0
    for piece, count in _counted(pattern):
        if piece == "(":
            groups.append(0)
            item = 0
        elif piece == ")" and len(groups) > 1:
            item = groups.pop()
        else:
            yield item * count
            item = max(item, 1) * count
        groups[-1] = max(groups[-1], item)


def _counted(pattern: str) -> Iterator[tuple[str, int]]:
    """Each piece, and how often it repeats what comes before it: 0 for one that repeats nothing."""
    at = behind = 0
    before = ""
    for piece in pieces(pattern):
        count = _COUNT.match(pattern, at)
        if count:
            behind = count.end()
            yield piece, int(count[2] or count[1])
        elif at >= behind:
            yield piece, int(piece in ("*", "+", "?") and before != "(")
        before = piece
        at += len(piece)
