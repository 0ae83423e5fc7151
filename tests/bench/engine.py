"""How fast one GPU runs one model: decode, prefill, and where a word's time goes.

``python -m tests.bench.engine MODEL.gguf [--context 8192] [--profile]`` prints a table; figures are
compared with the time the weights alone take at the card's copy rate.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from app.engine.adapter import choose_adapter, copy_speed
from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine, Options, footprint
from app.engine.gguf import GgufFile
from app.engine.program import compile_program
from app.engine.standing import Standing
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part
from app.engine.workspace import Run

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


def profile(gpu: Gpu, engine: Engine, kind: ColumnClass, width: int, position: int) -> None:
    """Mean time of each kind of kernel when launches of that kind alone run one after another."""
    runner, builder = engine._runner, engine._programs._builder  # pyright: ignore[reportPrivateUsage]
    engine._write_records([Run([5] * min(width, 16), position)], width)  # pyright: ignore[reportPrivateUsage]
    dispatches = builder.embed(width) + builder.trunk(kind, width, 64)
    if kind is ColumnClass.STEP:
        dispatches += builder.head(width, collect=True)
    groups: dict[str, list[object]] = defaultdict(list)
    for dispatch in dispatches:
        sizes = dict(dispatch.kernel.constants)
        groups[f"{dispatch.kernel.label} {sizes.get('ROWS', '')} x {32 * sizes.get('UNITS', 0)}"].append(dispatch)
    total = 0.0
    for name, members in groups.items():
        repeat = max(1, 200 // len(members))
        program = compile_program(gpu, members * repeat)  # type: ignore[arg-type]
        runner.run([program])
        best = min(_timed(lambda p=program: runner.run([p])) for _ in range(5))
        each = best / repeat / len(members)
        total += each * len(members)
        print(f"    {name:34} {len(members):4} x {each * 1e6:8.2f} us = {each * len(members) * 1e3:7.3f} ms")
    print(f"    {'sum':34} {total * 1e3:30.3f} ms")


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--context", type=int, default=8704)
    parser.add_argument("--at", type=int, nargs="*", default=[16, 4096, 8192])
    parser.add_argument("--words", type=int, default=WORDS)
    parser.add_argument("--prompts", type=int, nargs="*", default=[512, 2048])
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--arithmetic", type=Arithmetic, default=Arithmetic.EXACT)
    options = parser.parse_args()
    bench(options)


def bench(options: argparse.Namespace) -> None:
    adapter = choose_adapter()
    rate = copy_speed(adapter)
    gpu, file = Gpu.open(adapter), GgufFile.open(options.model)
    config = read_config(file)
    part, most = (
        Part(0, config.layers, embed=True, head=True),
        Options(options.context, 1 << 40, KvFormat.F16, 512, arithmetic=options.arithmetic),
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
    if options.profile:
        print("  a step:")
        profile(gpu, engine, ColumnClass.STEP, 1, options.at[0])
        print("  a prompt chunk of 256:")
        profile(gpu, engine, ColumnClass.PROMPT, 256, 0)
    engine.close()
    gpu.close()


if __name__ == "__main__":
    main()
