"""A small model that drafts for a dense one, on real engines: what is said is what is said without it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from app.core.errors import DeviceLost
from app.engine.gguf import GgufFile
from app.engine.sampling import choose
from app.engine.types import KvFormat, Part, Sampling
from app.models.shelf import Shelf
from app.models.table import ModelTable
from app.room.chain import Chain
from app.room.compute import EngineCompute
from app.room.drafter import LookupWidths, Source
from app.room.ports import LoadRequest
from tests.e2e.engines import EngineLine, OneFile
from tests.e2e.rooms import record_of
from tests.e2e.test_drafts_with_engine import Round
from tests.room.line import PLEDGE, Answer, depth

MODEL = Path(__file__).parents[1] / "data" / "golden" / "tiny-qwen3.gguf"
RECURRENT = MODEL.with_name("tiny-qwen35.gguf")
IDS = [int(i) for i in np.random.default_rng(8).integers(2, 500, 40)]
MOST = {"greedy": 200, "creative": 80}
CUTS = {"alone": (), "split": (1,), "three": (1, 2)}
SAMPLERS = {"greedy": Sampling(temperature=0.0), "creative": Sampling(temperature=2.5, top_k=40, seed=3)}


class Files(OneFile):
    """A shelf with the model, and small ones by their keys."""

    def __init__(self, small: dict[str, Path]) -> None:
        super().__init__(MODEL)
        self._small = small

    def kept(self, key: str) -> Path | None:
        return self._small.get(key)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The model itself, and the same with the rows of one matrix the other way round."""
    other = tmp_path_factory.mktemp("models") / "other.gguf"
    shutil.copy(MODEL, other)
    tensor = GgufFile.open(other).tensor("blk.0.ffn_down.weight")
    rows = np.memmap(other, np.uint8, "r+", tensor.offset, (tensor.rows, tensor.nbytes // tensor.rows))
    rows[:] = rows[::-1].copy()
    rows.flush()
    return {"itself": MODEL, "other weights": other, "recurrent": RECURRENT}


@pytest.fixture
async def lines() -> AsyncIterator[list[EngineLine]]:
    made: list[EngineLine] = []
    yield made
    for one in made:
        await one.close()


async def made(lines: list[EngineLine], where: str, small: dict[str, Path], draft: str = "") -> EngineLine:
    record, cuts = record_of(MODEL), CUTS[where]
    computes = [EngineCompute(cast(Shelf, Files(small))) for _ in range(len(cuts) + 1)]
    for compute in computes:
        await compute.summary()  # One after another: OpenGL's adapters may not be looked for by two threads at once.
    lines.append(EngineLine(computes, record, cuts, ModelTable((record,))))
    part = Part(0, (*cuts, record.layers)[0], embed=True, head=True)
    await lines[-1].start(LoadRequest(record.key, part, 512, KvFormat.F16, PLEDGE, draft=draft))
    return lines[-1]


def whole(line: EngineLine, draft: str, pledge: int = PLEDGE) -> LoadRequest:
    part = Part(0, line.record.layers, embed=True, head=True)
    return LoadRequest(line.record.key, part, 512, KvFormat.F16, pledge, draft=draft)


async def answer(line: EngineLine, control: Any, sampler: str, most: int) -> Answer:
    line.chain.depth = control
    return await line.answer(IDS, most, choose=choose, sampling=SAMPLERS[sampler], context=512)


@pytest.mark.parametrize(
    ("where", "sampler"), [("alone", "greedy"), ("alone", "creative"), ("split", "greedy"), ("three", "creative")]
)
async def test_every_depth_says_the_same(
    lines: list[EngineLine], small: dict[str, Path], monkeypatch: pytest.MonkeyPatch, where: str, sampler: str
) -> None:
    """The model's own guesses are all right where it is greedy; those of other weights may be anything."""
    monkeypatch.setattr(Chain, "lookup_widths", LookupWidths())
    greedy, most = sampler == "greedy", MOST[sampler]
    itself, other = [await made(lines, where, small, draft) for draft in ("itself", "other weights")]
    said = await answer(itself, depth(0), sampler, most)
    assert set(said.sources) == {Source.SAMPLED}
    for line in (itself, other):
        got = await answer(line, Round(), sampler, most)
        figures = got.generation.drafter.acceptance
        assert got.ids == said.ids
        assert 0 < figures.accepted == got.sources.count(Source.BLOCK)
        assert (figures.accepted == figures.drafted) == (greedy and line is itself)


async def test_a_draft_model_goes_with_the_model(lines: list[EngineLine], small: dict[str, Path]) -> None:
    """Freed with it, loaded with the next one, and left out where it cannot be used."""
    line = await made(lines, "alone", small, "itself")
    compute = cast(EngineCompute, line.computes[0])
    first = await answer(line, depth(3), "greedy", 20)
    assert compute.draft_model
    await compute.unload()
    assert not compute.draft_model
    assert await compute.guesses([1, 2, 3], 3) == []
    for key, there in (("recurrent", False), ("nowhere", False), ("itself", True)):
        await compute.load(whole(line, key), lambda _share: None)
        assert compute.draft_model == there
    await compute.load(whole(line, "itself", _alone(compute)), lambda _share: None)
    assert not compute.draft_model
    assert (await answer(line, depth(3), "greedy", 20)).ids == first.ids


def _alone(compute: EngineCompute) -> int:
    """What the model takes by itself, and a little."""
    engine = compute._engine  # pyright: ignore[reportPrivateUsage]
    assert engine
    return engine.allocator.peak + (1 << 20)


async def test_after_a_lost_gpu_both_are_loaded_again(lines: list[EngineLine], small: dict[str, Path]) -> None:
    line = await made(lines, "alone", small, "itself")
    compute = cast(EngineCompute, line.computes[0])
    first = await answer(line, depth(3), "greedy", 20)
    gpu = compute._gpu  # pyright: ignore[reportPrivateUsage]
    assert gpu
    gpu.close()
    with pytest.raises(DeviceLost):
        await answer(line, depth(3), "greedy", 20)
    await compute.load(whole(line, "itself"), lambda _share: None)
    assert compute.draft_model
    assert (await answer(line, depth(3), "greedy", 20)).ids == first.ids
