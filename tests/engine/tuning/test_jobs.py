"""The products that are measured are those that the step columns of a part are made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engine.arch import read_config
from app.engine.builder import Builder
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile, TensorType
from app.engine.model import plan_weights
from app.engine.options import Options
from app.engine.placement import Job, Placement
from app.engine.tuning.jobs import step_jobs
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part
from tests.engine.models import Shape, write_model

OPTIONS = Options(256, 256 << 20, KvFormat.F32, prompt_columns=64, arithmetic=Arithmetic.FAST)
MIXED = {"attn_v.weight": TensorType.Q6_K, "ffn_down.weight": TensorType.F16, "ffn_gate.weight": TensorType.Q4_1}
MODELS = {
    "plain": Shape(layers=2),
    "several types": Shape("qwen2", layers=2, tied=False, types=MIXED),
    "mixture": Shape("qwen3moe", layers=2, experts=4, inner=128),
}


class Asked(dict[Job, Placement]):
    """Placements that remember what they were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: set[Job] = set()

    def get(self, job: Job, default: Any = None) -> Any:
        self.jobs.add(job)
        return default


@pytest.fixture(params=MODELS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> GgufFile:
    return GgufFile.open(write_model(tmp_path / "model.gguf", MODELS[request.param]))


@pytest.mark.parametrize("width", [1, 4])
def test_they_are_what_the_builder_asks_placements_for(gpu: Gpu, file: GgufFile, width: int) -> None:
    part, asked = Part(0, 2, embed=True, head=True), Asked()
    engine = Engine.load(gpu, file, part, OPTIONS)
    builder = builder_of(engine)
    builder._caps = replace(gpu.caps, software=False, placements=asked)  # pyright: ignore[reportPrivateUsage]
    builder.trunk(ColumnClass.STEP, width, 1, range(2))
    builder.head(width, collect=True)
    engine.close()
    jobs = step_jobs(plan_weights(file, read_config(file), part, gpu.caps.binding), (width,), head=True)
    wanted = {replace(job, rounded=False) for job in jobs} | {job for job in jobs if job.rounded}
    assert {replace(job, rounded=False) for job in asked.jobs} == {replace(job, rounded=False) for job in jobs}
    assert asked.jobs <= wanted
    assert {job for job in asked.jobs if job.rounded} == {job for job in jobs if job.rounded}


def test_narrow_widths_come_first_and_then_what_reads_most(gpu: Gpu, tmp_path: Path) -> None:
    file = GgufFile.open(write_model(tmp_path / "model.gguf", Shape(vocab=640)))
    plan = plan_weights(file, read_config(file), Part(0, 4, embed=True, head=True), gpu.caps.binding)
    jobs = step_jobs(plan, (1, 2), head=True)
    assert [job.width for job in jobs] == sorted(job.width for job in jobs)
    assert jobs[0].rounded
    assert len(jobs) == len(set(jobs))
    assert len(step_jobs(plan, (1,), head=False)) == len(step_jobs(plan, (1,), head=True)) - 1


def builder_of(engine: Engine) -> Builder:
    return engine._programs._builder  # pyright: ignore[reportPrivateUsage]
