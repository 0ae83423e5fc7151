"""Words a second of answers at a time where one device holds the whole model.

``python -m tests.bench.answers MODEL.gguf [--drafts]``: all that a room does from one drawn token to the next (writer,
lanes, gathered passes, drafts) but its language: prompts are random ids. One answer with the likeliest words, then one,
two and four that are drawn, each a conversation of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from app.engine.sampling import choose
from app.engine.types import KvFormat, Sampling
from app.models.shelf import Shelf
from app.room.compute import EngineCompute
from tests.e2e.engines import OneFile, request
from tests.e2e.rooms import record_of
from tests.room.writing import Alone

DRAWN = Sampling(temperature=0.7, top_k=40, top_p=0.95, seed=7)
LIKELIEST = Sampling()
CONTEXT = 2048
PROMPT = 64
PLEDGE = 1 << 37


async def rate(room: Alone, count: int, sampling: Sampling, words: int) -> float:
    """Words of all ``count`` answers a second, the time of their short prompts included."""
    draw = np.random.default_rng(count)
    prompts = [[int(i) for i in draw.integers(0, room.record.vocab, PROMPT)] for _ in range(count)]
    began = time.perf_counter()
    await asyncio.gather(*(room.ask(prompt, words, sampling=sampling) for prompt in prompts))
    return count * words / (time.perf_counter() - began)


async def measure(model: Path, words: int, *, drafts: bool) -> None:
    record = record_of(model)
    compute = EngineCompute(cast(Shelf, OneFile(model)))
    wanted = request(model, record, (), drafts=drafts, kv=KvFormat.F16, context=CONTEXT)
    await compute.load(replace(wanted, pledge=PLEDGE), lambda _share: None)
    room = await Alone(compute, record, choose=choose, context=CONTEXT).online()
    print(f"{model.name}, {'with' if drafts else 'without'} its draft block, {compute.sequences} lanes")
    for count, sampling in ((1, LIKELIEST), (1, DRAWN), (2, DRAWN), (4, DRAWN)):
        await rate(room, count, sampling, words)
        best = max([await rate(room, count, sampling, words) for _ in range(3)])
        print(f"  {count} {'likeliest' if sampling is LIKELIEST else 'drawn'}: {best:.1f} tok/s together")
    await compute.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--words", type=int, default=256)
    parser.add_argument("--drafts", action="store_true")
    options = parser.parse_args()
    asyncio.run(measure(options.model, options.words, drafts=options.drafts))


if __name__ == "__main__":
    main()
