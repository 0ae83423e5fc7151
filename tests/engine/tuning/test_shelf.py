"""What was measured is found again, on the same device only, and whatever lies in its file does no harm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.engine.device import Gpu
from app.engine.gguf import TensorType
from app.engine.placement import Epilogue, Job, Placement
from app.engine.tuning import shelf
from app.engine.tuning.shelf import MOST_TABLES, device_key, placements_path, remember, remembered

JOB = Job(TensorType.Q4_0, 5120, 544, Epilogue.ADD, 2)
PLACEMENTS = {JOB: Placement(2, 4, 2, ahead=2), replace(JOB, width=1): Placement(4, 2, 1)}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    return tmp_path


def test_placements_are_found_again(gpu: Gpu) -> None:
    assert remembered(gpu) == {}
    remember(gpu, PLACEMENTS)
    assert remembered(gpu) == PLACEMENTS
    remember(gpu, {JOB: Placement(4, 2, 1)})
    assert remembered(gpu) == {JOB: Placement(4, 2, 1)}


@pytest.mark.parametrize("fact", ["name", "driver", "backend"])
def test_those_of_another_device_or_driver_are_not_taken(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, fact: str) -> None:
    remember(gpu, PLACEMENTS)
    monkeypatch.setattr(gpu, "info", replace(gpu.info, **{fact: "another"}))
    assert remembered(gpu) == {}
    remember(gpu, {})
    monkeypatch.undo()


def test_those_of_other_kernels_are_not_taken(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    before = device_key(gpu)
    write = shelf.write_kernel
    monkeypatch.setattr(shelf, "write_kernel", lambda *args: write(*args) + "// changed")
    assert device_key(gpu) != before


def test_two_devices_share_the_file_and_old_ones_leave_it(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(MOST_TABLES + 1):
        monkeypatch.setattr(gpu, "info", replace(gpu.info, name=f"card {i}"))
        remember(gpu, PLACEMENTS)
    for i in range(MOST_TABLES + 1):
        monkeypatch.setattr(gpu, "info", replace(gpu.info, name=f"card {i}"))
        assert bool(remembered(gpu)) == (i > 0)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"tables": 3}', b'{"tables": [{"device": "x"}]}', b"[" * 100_000, b'{"other": 1}'],
    ids=["empty", "cut", "no text", "no list", "no placements", "deep", "foreign"],
)
def test_a_damaged_file_is_ignored_and_written_anew(gpu: Gpu, content: bytes) -> None:
    placements_path().write_bytes(content)
    assert remembered(gpu) == {}
    remember(gpu, PLACEMENTS)
    assert remembered(gpu) == PLACEMENTS


def test_impossible_placements_are_left_out(gpu: Gpu) -> None:
    remember(gpu, {JOB: Placement(1 << 20, 1, 1), replace(JOB, width=4): Placement(4, 1, 4)})
    assert remembered(gpu) == {replace(JOB, width=4): Placement(4, 1, 4)}


def test_a_disk_that_refuses_does_not_end_the_load(gpu: Gpu, home: Path) -> None:
    placements_path().mkdir()
    remember(gpu, PLACEMENTS)
    assert remembered(gpu) == {}
    assert not list(home.glob("*.part"))
