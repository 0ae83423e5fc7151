"""How far two rows are the same, around the blocks in which they are compared."""

from __future__ import annotations

import pytest

from app.core.prefix import BLOCK, common_length


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_rows_part_where_they_differ(length: int) -> None:
    row = list(range(length))
    assert common_length(row, row) == common_length(row, [*row, 1]) == common_length((*row, 1), row) == length
    assert common_length([*row, 1, 2], (*row, 3, 2)) == length
    assert common_length([7, *row], [8, *row]) == 0
