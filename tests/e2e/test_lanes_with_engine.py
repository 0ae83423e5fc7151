"""Several answers at once on a real engine: each says what it says alone, and they share passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import pytest_asyncio

from app.engine.sampling import choose
from app.engine.types import STEP_COLUMNS, KvFormat, Sampling
from app.models.shelf import Shelf
from app.room import generate
from app.room.compute import EngineCompute
from tests.e2e.engines import OneFile
from tests.e2e.engines import request as load_request
from tests.e2e.rooms import record_of
from tests.room.writing import Alone, Work

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
MODELS = {
    "dense": ("tiny-qwen3.gguf", False),
    "hybrid": ("tiny-qwen35moe.gguf", False),
    "drafts": ("tiny-qwen35moe.gguf", True),
}
CREATIVE = Sampling(temperature=0.8, top_k=40, seed=3)
DRAW = np.random.default_rng(5)
PROMPTS = [[int(i) for i in DRAW.integers(2, 1000, size)] for size in (50, 40, 33)]
MOST, SHORT, TURNS = 18, 5, 3
BEGINNING = [7, 8, 9]


@dataclass(frozen=True)
class Device:
    """One engine with a whole model."""

    kind: str
    compute: EngineCompute

    async def room(self, answers: int = 2, lanes: int = 0) -> Alone:
        """As if nobody had asked anything yet."""
        record = record_of(GOLDEN / MODELS[self.kind][0])
        return await Alone(self.compute, record, choose=choose, answers=answers, lanes=lanes).online()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MODELS)
async def device(request: pytest.FixtureRequest) -> AsyncIterator[Device]:
    name, drafts = MODELS[request.param]
    path = GOLDEN / name
    compute = EngineCompute(cast(Shelf, OneFile(path)))
    wanted = load_request(path, record_of(path), (), drafts=drafts, kv=KvFormat.F16, context=512)
    await compute.load(wanted, lambda _share: None)
    yield Device(request.param, compute)
    await compute.close()


async def test_answers_at_once_say_what_each_says_alone(device: Device) -> None:
    assert device.compute.sequences == 4
    alone = [await (await device.room()).ask(prompt, MOST, sampling=CREATIVE) for prompt in PROMPTS]
    together = await device.room()
    got = await asyncio.gather(*(together.ask(prompt, MOST, sampling=CREATIVE) for prompt in PROMPTS))
    assert [work.now.ids for work in got] == [work.now.ids for work in alone]
    assert [work.now.record for work in got] == [work.now.record for work in alone]
    shared = [columns for columns in together.passes if len(columns) > 1]
    assert len(shared) > len(together.passes) / 2
    assert max(map(len, shared)) == len(PROMPTS)
    widths = {width for columns in shared for width in columns.values()}
    assert max(sum(columns.values()) for columns in shared) <= STEP_COLUMNS
    assert (max(widths) > 1) == (device.kind == "drafts")


async def test_more_conversations_than_lanes_come_back_with_their_bits(device: Device) -> None:
    """What is not in a lane any more was parked, and goes on as if nobody else had asked."""
    alone = [await conversation(await device.room(), number) for number in range(6)]
    room = await device.room(answers=5, lanes=2)
    said: list[list[Work]] = [[] for _ in range(6)]
    for _ in range(TURNS):
        for pair in ((0, 1), (2, 3), (4, 5)):
            got = await asyncio.gather(*(turn_of(room, n, said[n]) for n in pair))
            for n, work in zip(pair, got, strict=True):
                said[n].append(work)
    assert max(map(len, room.passes)) == 2
    for mine, expected in zip(said, alone, strict=True):
        assert [work.now.ids for work in mine] == [work.now.ids for work in expected]
        assert [work.now.record for work in mine] == [work.now.record for work in expected]
        assert [work.now.reused for work in mine[1:]] == [len(work.prompt) + SHORT - 1 for work in mine[:-1]]


async def turn_of(room: Alone, number: int, said: list[Work]) -> Work:
    """The conversation so far, with a question of that turn; all begin alike."""
    draw = np.random.default_rng(100 * number + len(said))
    question = [int(i) for i in draw.integers(2, 1000, 9 if said else 70 + 3 * number)]
    so_far = [*said[-1].prompt, *said[-1].now.ids] if said else BEGINNING
    return await room.ask([*so_far, *question], SHORT, shared=len(BEGINNING))


async def conversation(room: Alone, number: int) -> list[Work]:
    said: list[Work] = []
    for _ in range(TURNS):
        said.append(await turn_of(room, number, said))
    return said


async def test_words_drawn_on_the_gpu_are_those_of_single_steps(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a dense model that nothing drafts for has such; the others' steps are as many either way."""
    monkeypatch.setattr(generate, "AHEAD_SECONDS", 1e6)
    said: dict[int, list[list[int]]] = {}
    passes: dict[int, int] = {}
    for most in (1, 8):
        monkeypatch.setattr(generate, "MOST_AHEAD", most)
        room = await device.room()
        first = await room.ask(PROMPTS[0], MOST, sampling=Sampling())
        after = [*PROMPTS[0], *first.now.ids, 5, 6, 7]
        said[most] = [first.now.ids, (await room.ask(after, MOST, sampling=Sampling())).now.ids]
        passes[most] = len(room.passes)
    assert said[1] == said[8]
    assert (passes[8] < passes[1] / 3) == (device.kind == "dense")
