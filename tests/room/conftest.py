"""Fixtures of several files."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.room.line import Line


@pytest.fixture
async def lines() -> AsyncIterator[list[Line]]:
    """Those that are put in are closed."""
    made: list[Line] = []
    yield made
    for one in made:
        await one.close()
