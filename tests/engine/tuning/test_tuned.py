"""A load measures what its model needs, once, and its steps keep their bits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile, TensorType
from app.engine.ops import fast_matvec
from app.engine.ops.fast_matvec import usual_placement
from app.engine.options import Options
from app.engine.placement import Epilogue, Job, Placement
from app.engine.program import Program
from app.engine.tuning import stopwatch, trial, tuned
from app.engine.tuning.batch import Ready
from app.engine.tuning.shelf import placements_path, remember, remembered
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part
from tests.engine.models import Shape, write_model

OPTIONS = Options(256, 256 << 20, KvFormat.F32, prompt_columns=64, arithmetic=Arithmetic.FAST)
PART = Part(0, 1, embed=True, head=True)


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is rotated, and no clock has to rise."""
    monkeypatch.setenv("POOLED_HOME", str(tmp_path))
    monkeypatch.setattr(trial, "ROTATED", 1)
    monkeypatch.setattr(stopwatch, "_RISE", 0.0)
    monkeypatch.setattr(stopwatch, "_LONGEST", 0.0)
    monkeypatch.setattr("app.engine.tuning.STEP_WIDTHS", (1, 4))


@pytest.fixture
def file(tmp_path: Path) -> GgufFile:
    return GgufFile.open(write_model(tmp_path / "model.gguf", Shape(layers=1)))


@pytest.fixture
def real(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """The GPU as if it were no imitation."""
    monkeypatch.setattr(gpu, "caps", replace(gpu.caps, software=False))
    return gpu


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> list[Placement]:
    """What was measured, uncompiled: the more rows a team, the less time it takes."""
    asked: list[Placement] = []

    def times(ready: Ready, _watch: object) -> dict[Placement, float]:
        asked.extend(ready.programs)
        return {placement: 1 / placement.rows for placement in ready.programs}

    monkeypatch.setattr(Ready, "times", times)
    monkeypatch.setattr(trial.Trial, "programs", lambda _trial, placements: dict.fromkeys(placements, Program([])))
    return asked


def test_imitations_and_the_exact_arithmetic_are_left_alone(
    gpu: Gpu, real: Gpu, file: GgufFile, costs: list[Placement], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuned(real, file, PART, replace(OPTIONS, arithmetic=Arithmetic.EXACT)) is real.caps
    monkeypatch.setattr(gpu, "caps", replace(gpu.caps, features=frozenset()))
    assert tuned(gpu, file, PART, OPTIONS) is gpu.caps
    monkeypatch.setattr(gpu, "caps", replace(gpu.caps, software=True, features=real.caps.features))
    assert tuned(gpu, file, PART, OPTIONS) is gpu.caps
    assert not costs


def test_what_was_measured_is_remembered_and_not_measured_again(
    real: Gpu, file: GgufFile, costs: list[Placement]
) -> None:
    first = tuned(real, file, PART, OPTIONS, budget=600)
    assert len(costs) > len(first.placements) >= 8
    assert remembered(real) == first.placements
    costs.clear()
    assert tuned(real, file, PART, OPTIONS, budget=600) == real.caps
    assert not costs


def test_nothing_is_measured_without_time_nor_when_the_load_is_called_off(
    real: Gpu, file: GgufFile, costs: list[Placement]
) -> None:
    assert tuned(real, file, PART, OPTIONS, budget=0).placements == {}
    assert tuned(real, file, PART, OPTIONS, lambda: True, budget=600).placements == {}
    assert not costs


def test_the_gpu_s_own_clock_is_read(real: Gpu, file: GgufFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.tuning.STEP_WIDTHS", (1,))
    monkeypatch.setattr("app.engine.tuning.jobs._layer_jobs", lambda _layer: [])
    placements = tuned(real, file, PART, OPTIONS, budget=600).placements
    assert [(job.epilogue, job.rows, job.width) for job in placements] == [(Epilogue.STORE, 512, 1)]


def test_a_placement_with_other_bits_is_not_taken(
    real: Gpu, file: GgufFile, costs: list[Placement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial.Trial, "bits", lambda _trial, placement: np.array([placement.rows]))
    placements = tuned(real, file, PART, OPTIONS, budget=600).placements
    assert costs
    assert placements == {job: usual_placement(job, real.caps) for job in placements}


def test_jobs_share_the_pledge_and_what_has_no_room_in_it_is_passed_over(
    real: Gpu, file: GgufFile, costs: list[Placement]
) -> None:
    everything = tuned(real, file, PART, OPTIONS, budget=600).placements
    placements_path().unlink()
    some = tuned(real, file, PART, replace(OPTIONS, pledge=256 << 10), budget=600).placements
    assert {job for job in everything if job not in some} == {job for job in everything if job.rounded}


def test_placements_that_a_driver_refuses_take_no_part(real: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(TensorType.Q4_0, 64, 33, Epilogue.STORE, 1)
    usual, broken = usual_placement(job, real.caps), Placement(4, 2, 1)
    render = fast_matvec.write_kernel
    monkeypatch.setattr(
        fast_matvec, "write_kernel",
        lambda kind, order, place, *rest, **named: "no kernel" if place == broken
        else render(kind, order, place, *rest, **named),
    )  # fmt: skip
    with closing(trial.Trial(real, job, OPTIONS.pledge)) as one:
        assert list(one.programs([usual, broken, Placement(2, 1, 1)])) == [usual, Placement(2, 1, 1)]


def test_steps_keep_their_bits(real: Gpu, file: GgufFile, costs: list[Placement]) -> None:
    usual = steps(real, file)
    real.caps = tuned(real, file, PART, OPTIONS, budget=600)
    placements = real.caps.placements
    assert len([job for job, place in placements.items() if place != usual_placement(job, real.caps)]) >= 4
    assert all(np.array_equal(a, b) for a, b in zip(steps(real, file), usual, strict=True))


def test_placements_the_file_makes_up_change_no_bit(real: Gpu, file: GgufFile, costs: list[Placement]) -> None:
    usual = steps(real, file)
    made_up = {job: Placement(1, 1, 1) for job in tuned(real, file, PART, OPTIONS, budget=600).placements}
    remember(real, made_up)
    real.caps = tuned(real, file, PART, OPTIONS, budget=0)
    assert real.caps.placements == made_up
    assert all(np.array_equal(a, b) for a, b in zip(steps(real, file), usual, strict=True))


def steps(gpu: Gpu, file: GgufFile) -> list[np.ndarray]:
    """States and logits of one and of four columns."""
    engine = Engine.load(gpu, file, PART, OPTIONS)
    states = [engine.tokens(ids, 0, ColumnClass.STEP) for ids in ([5], [5, 6, 7, 8])]
    found = [*states, *(engine.logits(each) for each in states)]
    engine.close()
    return found
