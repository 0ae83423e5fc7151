"""``python -m tests.protocol``: it finds what is wrong in a file of cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.protocol import main

CASES = Path(__file__).parents[1] / "data" / "protocol" / "codes.json"


def test_good_file_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CASES)]) == 0
    assert "100 of 100" in capsys.readouterr().out


def test_wrong_output_and_unknown_operation_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {
            "op": "parse",
            "name": "wrong",
            "in": "4TKG9P",
            "out": {"code": "ABCDEF", "accepted": True, "shown": "x"},
        },
        {"op": "sing", "in": 1, "out": 2},
    ]
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"cases": cases}))
    assert main([f"codes={path}"]) == 1
    told = capsys.readouterr().out
    assert "0 parse wrong" in told
    assert "unknown operation" in told
