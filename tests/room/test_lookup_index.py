"""The index gives exactly the drafts that the search gives."""

import random

import pytest

from app.engine.lookup import WINDOW, lookup_drafts
from app.room.lookup_index import LookupIndex


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
        assert index.drafts(most) == lookup_drafts(ids, most)
        found += bool(index.drafts(1))
    assert found


@pytest.mark.parametrize("at", [499, 500, 501, 4000])
def test_only_the_window_counts(at: int) -> None:
    ids = list(range(1000, 1000 + WINDOW + 500))
    ids[at : at + 2] = ids[-2:] = [1, 2]
    assert LookupIndex(ids).drafts(5) == lookup_drafts(ids, 5)
