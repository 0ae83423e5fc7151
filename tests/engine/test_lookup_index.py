"""The index gives exactly the drafts that the search gives."""

import random

import pytest

from app.engine.lookup import Lookup, LookupIndex

RULE = Lookup()


def searched(context: list[int], most: int) -> list[int]:
    """The same by looking at every earlier place."""
    earliest = max(0, len(context) - RULE.window)
    for size in range(RULE.longest, RULE.shortest - 1, -1):
        tail = context[-size:]
        for start in range(len(context) - size - 1, earliest - 1, -1):
            if context[start : start + size] == tail:
                return context[start + size : start + size + most] if most > 0 else []
    return []


@pytest.mark.parametrize("alphabet", [2, 5, 40])
@pytest.mark.parametrize("start", [0, 1, 3, 60])
def test_it_equals_the_search_while_it_grows(alphabet: int, start: int) -> None:
    dice = random.Random(alphabet + start)
    ids = [dice.randrange(alphabet) for _ in range(start)]
    index = LookupIndex(ids)
    found = 0
    for _ in range(200):
        ids.append(dice.randrange(alphabet))
        index.append(ids[-1])
        most = dice.randrange(16)
        assert index.drafts(most) == searched(ids, most)
        found += bool(index.drafts(1))
    assert found


@pytest.mark.parametrize("at", [499, 500, 501, 4000])
def test_only_the_window_counts(at: int) -> None:
    ids = list(range(1000, 1000 + RULE.window + 500))
    ids[at : at + 2] = ids[-2:] = [1, 2]
    assert LookupIndex(ids).drafts(5) == searched(ids, 5)
