"""Saved states and several conversations at once: ``python -m tests.bench.state MODEL.gguf [--length 20000]``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from app.engine.engine import Engine
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Step
from tests.bench.loading import load_whole

WORDS = 64
WARM = 4


def checkpoint(engine: Engine, length: int) -> None:
    """A second turn behind ``length`` tokens: from a saved state, and read again."""
    prompt = [int(i) for i in np.random.default_rng(1).integers(0, engine.config.vocab, length)]
    start = time.perf_counter()
    engine.tokens(prompt, 0, ColumnClass.PROMPT)
    cold = time.perf_counter() - start
    engine.decode(5, length)  # the first answer has compiled what a word takes
    start = time.perf_counter()
    engine.save("turn", length)
    saved = time.perf_counter() - start
    engine.tokens(prompt[:300], 0, ColumnClass.PROMPT)
    start = time.perf_counter()
    engine.decode(5, engine.restore("turn"))
    warm = time.perf_counter() - start
    size = engine.allocator.by_purpose()["saved conversations"] / 1e6
    print(f"  {length} tokens: read in {cold:.2f} s; saved in {saved * 1e3:.1f} ms, {size:.0f} MB; "
          f"restored with the next word in {warm * 1e3:.1f} ms ({warm / cold:.2%} of reading)")  # fmt: skip
    engine.drop("turn")


def together(engine: Engine, count: int) -> None:
    """Words a second of ``count`` conversations, each drawn on the processor."""
    for sequence in range(count):
        engine.tokens([7] * 64, 0, ColumnClass.PROMPT, sequence)
    start = 0.0
    for word in range(WARM + WORDS):
        if word == WARM:
            start = time.perf_counter()
        engine.step([Step([5], 64 + word, sequence) for sequence in range(count)])
    rate = WORDS / (time.perf_counter() - start)
    print(f"  {count} conversations: {rate:.1f} tok/s each, {rate * count:.1f} together")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--length", type=int, default=20_000)
    options = parser.parse_args()
    gpu, engine = load_whole(options.model, options.length + 512, KvFormat.F16, Arithmetic.FAST, sequences=4)
    print(f"{gpu.info.name}, {options.model.name}")
    checkpoint(engine, options.length)
    for count in (1, 2, 4):
        together(engine, count)
    engine.close()
    gpu.close()


if __name__ == "__main__":
    main()
