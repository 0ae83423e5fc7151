"""Every recorded case of the codecs, the wire, the proofs, the codes, the planner and the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol_ops import Case, find_check, load, load_cases, title

DATA = Path(__file__).parents[1] / "data" / "protocol"
SUITES = ("binarypack", "frames", "proofs", "codes", "planner", "conversation")

for _suite in SUITES:
    load(_suite)


@pytest.mark.parametrize(
    ("suite", "case"),
    [
        pytest.param(suite, case, id=f"{suite} {title(case, index)}")
        for suite in SUITES
        for index, case in enumerate(load_cases(DATA / f"{suite}.json"))
    ],
)
def test_recorded_case(suite: str, case: Case) -> None:
    check = find_check(suite, case)
    assert check is not None, f"no operation {case['op']}"
    check(case)
