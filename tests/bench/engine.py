"""How fast one GPU runs one model: decode, prefill, and the first word.

``python -m tests.bench.engine MODEL.gguf [--context 8192]`` prints a table; figures are
compared with the time the weights alone take at the card's copy rate.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app.engine.adapter import choose_adapter, copy_speed
from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options, footprint, prompt_columns_for
from app.engine.standing import Standing
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part

WORDS = 256
REPEATS = 3


def median(measure: Callable[[], float]) -> float:
    measure()
    return statistics.median(measure() for _ in range(REPEATS))


def ids(engine: Engine, count: int, seed: int = 1) -> list[int]:
    return [int(i) for i in np.random.default_rng(seed).integers(0, engine.config.vocab, count)]


def prefill(engine: Engine, count: int) -> float:
    """Tokens a second for a prompt of ``count``."""
    prompt = ids(engine, count)

    def run() -> float:
        start = time.perf_counter()
        engine.tokens(prompt, 0, ColumnClass.PROMPT)
        return count / (time.perf_counter() - start)

    return median(run)


def ahead(engine: Engine, position: int, words: int) -> float:
    """Greedy words a second, steps sent ahead, behind ``position`` tokens."""

    def run() -> float:
        stand(engine, position)
        stream = engine.greedy(5, position, [], words + 8)
        for _ in range(8):
            next(stream)
        start = time.perf_counter()
        count = sum(1 for _ in stream)
        return count / (time.perf_counter() - start)

    return median(run)


def sampled(engine: Engine, position: int, words: int) -> float:
    """Words a second when each is drawn on the processor from the 64 best, as a room does."""

    def run() -> float:
        stand(engine, position)
        start = time.perf_counter()
        for i in range(words):
            engine.decode(5, position + i)
        return words / (time.perf_counter() - start)

    return median(run)


def stand(engine: Engine, position: int) -> None:
    """As if ``position`` tokens had been read: what the state holds changes no speed."""
    engine._standing[0] = Standing(position, position)  # pyright: ignore[reportPrivateUsage]


def first_word(engine: Engine) -> float:
    """Seconds to the first word behind a prompt of 16 tokens."""
    prompt = ids(engine, 16)

    def run() -> float:
        start = time.perf_counter()
        engine.tokens(prompt[:15], 0, ColumnClass.PROMPT)
        engine.decode(prompt[15], 15)
        return time.perf_counter() - start

    return median(run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--context", type=int, default=8704)
    parser.add_argument("--at", type=int, nargs="*", default=[16, 4096, 8192])
    parser.add_argument("--words", type=int, default=WORDS)
    parser.add_argument("--prompts", type=int, nargs="*", default=[512, 2048])
    parser.add_argument("--columns", type=int, default=0, help="of a prompt chunk; by default what suits the model")
    parser.add_argument("--arithmetic", type=Arithmetic, default=Arithmetic.EXACT)
    options = parser.parse_args()
    bench(options)


def bench(options: argparse.Namespace) -> None:
    adapter = choose_adapter()
    rate = copy_speed(adapter)
    gpu, file = Gpu.open(adapter), GgufFile.open(options.model)
    config = read_config(file)
    columns = options.columns or prompt_columns_for(config, gpu)
    part, most = (
        Part(0, config.layers, embed=True, head=True),
        Options(options.context, 1 << 40, KvFormat.F16, columns, arithmetic=options.arithmetic),
    )
    planned = footprint(file, part, most, gpu.caps.binding)
    start = time.perf_counter()
    engine = Engine.load(gpu, file, part, most)
    print(
        f"{gpu.info.name}, {gpu.info.driver}; {options.model.name}, {options.arithmetic.value}; copies {rate:.0f} GB/s"
    )
    print(f"  load {time.perf_counter() - start:.1f} s, {planned.weights / 1e9:.3f} GB of weights, limit at copy rate "
          f"{rate * 1e9 / planned.weights if rate else 0:.0f} tok/s")  # fmt: skip
    for count in options.prompts:
        print(f"  prefill {count:5} tokens: {prefill(engine, count):9.1f} tok/s")
    for position in options.at:
        fast, slow = ahead(engine, position, options.words), sampled(engine, position, options.words)
        print(f"  decode behind {position:5}: {fast:8.1f} tok/s sent ahead, {slow:8.1f} tok/s one by one")
    print(f"  first word behind 16 tokens: {first_word(engine) * 1e3:.1f} ms")
    engine.close()
    gpu.close()


if __name__ == "__main__":
    main()
