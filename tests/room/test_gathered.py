"""Steps of several answers go through the engine together, and none waits for another that does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from app.core.errors import DeviceLost
from app.engine.types import Candidates, Step, Stepped
from app.room.gathered import GatheredSteps


@dataclass
class FakeEngine:
    """Answers each step with its position; ``gate`` holds a pass until it is set."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    passes: list[list[int]] = field(default_factory=list[list[int]])
    gate: asyncio.Event | None = None
    error: Exception | None = None

    async def run(self, steps: Sequence[Step]) -> list[Stepped]:
        self.passes.append([step.sequence for step in steps])
        await (self.gate.wait() if self.gate is not None else asyncio.sleep(0))
        if self.error is not None:
            raise self.error
        return [Stepped([_candidates(step.position)] * len(step.ids), None) for step in steps]


def _candidates(token: int) -> Candidates:
    return Candidates(np.array([token], np.int32), np.zeros(1, np.float32), 0.0, 0)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def steps(engine: FakeEngine) -> GatheredSteps:
    return GatheredSteps(engine.turn, engine.run)


async def answer(steps: GatheredSteps, sequence: int, words: int = 5, start: int = 0) -> list[int]:
    """What an answer is told, step after step."""
    said: list[int] = []
    for position in range(start, start + words):
        (stepped,) = await steps.step([Step([1], position, sequence)])
        said.append(stepped.candidates[0].best)
    return said


async def turns_of_the_loop(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_answers_in_step_share_every_pass(engine: FakeEngine, steps: GatheredSteps) -> None:
    told = await asyncio.gather(answer(steps, 0), answer(steps, 1, start=100), answer(steps, 2, words=3))
    assert told == [[0, 1, 2, 3, 4], [100, 101, 102, 103, 104], [0, 1, 2]]
    assert engine.passes == [[0, 1, 2]] * 3 + [[0, 1]] * 2


async def test_one_alone_has_the_engine_in_the_same_turn_of_the_loop(engine: FakeEngine, steps: GatheredSteps) -> None:
    asked = asyncio.create_task(answer(steps, 0, words=1))
    await turns_of_the_loop(3)
    assert engine.passes == [[0]]
    assert await asked == [0]


async def test_who_comes_while_a_pass_runs_goes_with_those_that_were_in_it(
    engine: FakeEngine, steps: GatheredSteps
) -> None:
    engine.gate = asyncio.Event()
    first = asyncio.create_task(answer(steps, 0, words=3))
    await turns_of_the_loop()
    second = asyncio.create_task(answer(steps, 1, words=2))
    await turns_of_the_loop()
    assert engine.passes == [[0]]
    engine.gate.set()
    await asyncio.gather(first, second)
    assert [sorted(one) for one in engine.passes] == [[0], [0, 1], [0, 1]]


async def test_a_step_joins_until_its_pass_has_the_engine(engine: FakeEngine, steps: GatheredSteps) -> None:
    """A long call of another kind is under way."""
    async with engine.turn:
        asked = [asyncio.create_task(answer(steps, 0, words=1))]
        await turns_of_the_loop()
        asked.append(asyncio.create_task(answer(steps, 1, words=1)))
        await turns_of_the_loop()
        assert engine.passes == []
    await asyncio.gather(*asked)
    assert engine.passes == [[0, 1]]


async def test_a_pass_has_sixteen_columns_and_the_oldest_go_first(engine: FakeEngine, steps: GatheredSteps) -> None:
    wide = [asyncio.create_task(steps.step([Step([1] * width, 0, n)])) for n, width in enumerate((8, 6, 3, 1))]
    results = await asyncio.gather(*wide)
    assert engine.passes == [[0, 1], [2, 3]]
    assert [len(stepped.candidates) for (stepped,) in results] == [8, 6, 3, 1]


async def test_a_pass_that_fails_fails_all_in_it_and_nobody_else(engine: FakeEngine, steps: GatheredSteps) -> None:
    engine.gate, engine.error = asyncio.Event(), DeviceLost("The GPU is gone.")
    both = [asyncio.create_task(answer(steps, n)) for n in range(2)]
    await turns_of_the_loop()
    late = asyncio.create_task(answer(steps, 2, words=1))
    await turns_of_the_loop()
    engine.gate.set()
    for one in both:
        with pytest.raises(DeviceLost, match="gone"):
            await one
    with pytest.raises(DeviceLost):
        await late
    engine.error = None
    assert await answer(steps, 0, words=2) == [0, 1]
    assert engine.passes == [[0, 1], [2], [0], [0]]


@pytest.mark.parametrize("running", [True, False], ids=["in a pass", "before its pass"])
async def test_whoever_gives_up_harms_nobody(engine: FakeEngine, steps: GatheredSteps, running: bool) -> None:
    engine.gate = asyncio.Event()
    if not running:
        before = asyncio.create_task(answer(steps, 3, words=1))
        await turns_of_the_loop()
    both = [asyncio.create_task(answer(steps, n, words=2)) for n in range(2)]
    await turns_of_the_loop()
    both[0].cancel()
    await turns_of_the_loop()
    engine.gate.set()
    assert await both[1] == [0, 1]
    with pytest.raises(asyncio.CancelledError):
        await both[0]
    if not running:
        assert await before == [0]
        assert engine.passes == [[3], [1], [1]]


async def test_a_sequence_takes_one_step_at_a_time(engine: FakeEngine, steps: GatheredSteps) -> None:
    """Who asks for one that was given up on before its end waits for the next pass."""
    await asyncio.gather(steps.step([Step([1], 4, 0)]), steps.step([Step([1], 5, 0)]))
    assert engine.passes == [[0], [0]]
