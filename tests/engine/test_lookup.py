"""Prompt lookup: every case of the protocol vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol_ops import Case, find_check, load, load_cases, title

CASES = load_cases(Path(__file__).parents[1] / "data" / "protocol" / "lookup.json")
load("lookup")


@pytest.mark.parametrize("case", CASES, ids=[title(case, i) for i, case in enumerate(CASES)])
def test_case(case: Case) -> None:
    check = find_check("lookup", case)
    assert check is not None
    check(case)
