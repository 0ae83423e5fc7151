"""Every placement gives the bits of the usual one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.engine.device import Caps
from app.engine.gguf.types import TensorType
from app.engine.ops.fast_matvec import is_possible, usual_placement
from app.engine.placement import Epilogue, Job, Placement
from app.engine.selftest import Bench
from app.engine.tuning import trial as trials
from app.engine.tuning.search import candidates
from app.engine.tuning.trial import Trial

PLEDGE = 64 << 20


@pytest.fixture(autouse=True)
def one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "ROTATED", 1)


def real_caps(bench: Bench) -> Caps:
    """As if this were no imitation, so that workgroups are as large as on a GPU."""
    return replace(bench.gpu.caps, software=False)


def differing(bench: Bench, monkeypatch: pytest.MonkeyPatch, job: Job, placements: list[Placement]) -> list[Placement]:
    """Those of ``placements`` whose bits are not the usual one's."""
    caps = real_caps(bench)
    monkeypatch.setattr(bench.gpu, "caps", caps)
    trial = Trial(bench.gpu, job, PLEDGE)
    trial.programs([usual_placement(job, caps), *placements])
    expected = trial.bits(usual_placement(job, caps))
    assert expected.any()
    wrong = [p for p in placements if not np.array_equal(trial.bits(p), expected)]
    trial.close()
    return wrong


@pytest.mark.parametrize(
    ("kind", "rows", "units", "epilogue", "width"),
    [
        (TensorType.Q4_0, 38, 66, Epilogue.STORE, 1),
        (TensorType.Q4_K, 21, 130, Epilogue.WEIGHTED_ADD, 2),
        (TensorType.Q6_K, 44, 136, Epilogue.ADD, 16),
        (TensorType.Q8_0, 90, 65, Epilogue.SWIGLU, 4),
    ],
    ids=lambda value: value.name if isinstance(value, TensorType | Epilogue) else str(value),
)
def test_what_is_measured_has_the_bits_of_the_usual_placement(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: TensorType, rows: int, units: int, epilogue: Epilogue,
    width: int,
) -> None:  # fmt: skip
    job = Job(kind, rows, units, epilogue, width)
    others = candidates(job, real_caps(bench))[1:]
    assert len(others) >= 3
    assert not differing(bench, monkeypatch, job, others)


@pytest.mark.parametrize("width", [1, 4, 16])
def test_gated_values_have_the_same_bits_rounded_on_the_way_or_apart(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    job = Job(TensorType.Q4_0, 128, 98, Epilogue.SWIGLU, width, rounded=True)
    caps = real_caps(bench)
    assert usual_placement(job, caps).fused
    others = [Placement(4, 8, min(width, 2), ahead=2, fused=True), Placement(4, 2, min(width, 2))]
    assert all(is_possible(p, job, caps) for p in others)
    assert not differing(bench, monkeypatch, job, others)


@pytest.mark.parametrize(
    "placement",
    [
        Placement(0, 1, 1), Placement(1, 1 << 40, 1), Placement(16, 1, 1), Placement(4, 32, 2), Placement(4, 1, 3),
        Placement(4, 1, 1, ahead=64), Placement(8, 4, 1, fused=True), Placement(1, -1, 1),
    ],
)  # fmt: skip
def test_what_no_device_could_run_is_not_possible(bench: Bench, placement: Placement) -> None:
    job = Job(TensorType.Q4_0, 64, 33, Epilogue.STORE, 4)
    assert not is_possible(placement, job, real_caps(bench))


def test_lanes_that_are_joined_in_memory_get_no_more_of_it_than_there_is() -> None:
    caps = Caps(1 << 27, 1 << 27, 16 << 10, software=False, features=frozenset(), subgroup=0)
    job = Job(TensorType.Q4_0, 64, 33, Epilogue.STORE, 8)
    assert is_possible(Placement(8, 2, 8), job, caps)
    assert not is_possible(Placement(8, 4, 8), job, caps)
    assert is_possible(Placement(8, 4, 8), job, replace(caps, subgroup=32))
