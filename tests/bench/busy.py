"""Decode speed while the event loop is half busy, as a fraction of an idle one.

``python -m tests.bench.busy MODEL.gguf`` decodes through the engine's thread as a room does, once with an
idle loop and once with Python work for 8 of every 16 ms on it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from app.engine.arch import read_config
from app.engine.gguf import GgufFile
from app.engine.types import KvFormat, Part, Step
from app.models.shelf import Shelf
from app.room.compute import EngineCompute
from app.room.ports import LoadRequest
from tests.e2e.rooms import table_with

PERIOD, WORK = 0.016, 0.008


async def busy_half() -> None:
    while True:
        until = time.perf_counter() + WORK
        while time.perf_counter() < until:
            sum(range(200))
        await asyncio.sleep(PERIOD - WORK)


async def rate(compute: EngineCompute, words: int) -> float:
    await compute.step([Step([5], 0)])
    start = time.perf_counter()
    for position in range(1, words + 1):
        await compute.step([Step([5], position)])
    return words / (time.perf_counter() - start)


async def measure(path: Path, words: int) -> None:
    compute = EngineCompute(Shelf(table_with(path)))
    layers = read_config(GgufFile.open(path)).layers
    part = Part(0, layers, embed=True, head=True)
    await compute.load(LoadRequest("tiny", part, 1024, KvFormat.F16, 4 << 30), lambda _share: None)
    idle = await rate(compute, words)
    work = asyncio.create_task(busy_half(), name="half busy")
    loaded = await rate(compute, words)
    work.cancel()
    print(f"{path.name}: idle loop {idle:.1f} tok/s, half busy {loaded:.1f} tok/s, {100 * loaded / idle:.0f} %")
    await compute.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--words", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["POOLED_HOME"] = home
        asyncio.run(measure(options.model, options.words))


if __name__ == "__main__":
    main()
