"""The engine is never called twice at once."""

from __future__ import annotations

import asyncio

import pytest

from app.engine.types import ColumnClass, KvFormat, Part, Step
from app.room.ports import LoadRequest
from app.room.serial import SerialCompute
from tests.room.toy import ToyCompute

REQUEST = LoadRequest("toy", Part(0, 6, embed=True, head=True), 64, KvFormat.F32, 2**30)


async def test_a_call_waits_for_a_load_to_end() -> None:
    toy = ToyCompute(slow_load=asyncio.Event())
    compute = SerialCompute(toy)
    loading = asyncio.create_task(compute.load(REQUEST, lambda _share: None))
    await asyncio.sleep(0)
    word = asyncio.create_task(compute.step([Step([1], 0)]))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not word.done()
    assert toy.slow_load is not None
    toy.slow_load.set()
    await loading
    assert (await word)[0].candidates[0].best in range(97, 123)


async def test_a_cancelled_load_gives_its_turn_away() -> None:
    toy = ToyCompute(slow_load=asyncio.Event())
    compute = SerialCompute(toy)
    loading = asyncio.create_task(compute.load(REQUEST, lambda _share: None))
    await asyncio.sleep(0)
    freeing = asyncio.create_task(compute.unload())
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    await freeing
    toy.slow_load = None
    await compute.load(REQUEST, lambda _share: None)
    assert (await compute.tokens([1, 2], 0, ColumnClass.PROMPT)).shape[0] == 2
