"""Decoding with drafts whose acceptance is forced: ``python -m tests.bench.speculation MODEL.gguf``.

Every verify runs for real; how many of its drafts count as right is drawn at the asked rate.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from app.engine.engine import Engine
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Step
from tests.bench.loading import load_whole

STEPS = 48
WARM = 4


def accepted(rng: np.random.Generator, depth: int, rate: float) -> int:
    """Drafts up to the first wrong one."""
    right = rng.random(depth) < rate
    return depth if right.all() else int(right.argmin())


def run(engine: Engine, depth: int, rate: float) -> float:
    """Tokens a second."""
    rng, position, tokens, start = np.random.default_rng(2), 64, 0, 0.0
    states = engine.tokens([7] * position, 0, ColumnClass.PROMPT)
    last = states[-1]
    for step in range(WARM + STEPS):
        if step == WARM:
            start, tokens = time.perf_counter(), 0
        drafts = engine.draft(5, last, position, depth) if engine.part.draft else [5] * depth
        states = engine.step([Step([5, *drafts], position)], states=True)[0].states
        assert states is not None
        right = accepted(rng, depth, rate)
        if engine.part.draft and right:
            engine.learn(drafts[:right], states[:right], position + 1, ColumnClass.STEP)
        last = states[right]
        position += right + 1
        tokens += right + 1
    return tokens / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--depth", type=int, nargs="*", default=[1, 3, 7])
    options = parser.parse_args()
    gpu, engine = load_whole(options.model, 2048, KvFormat.F16, Arithmetic.FAST)
    drafts = "its draft block" if engine.part.draft else "drafts from nowhere"
    print(f"{gpu.info.name}, {options.model.name}, {drafts}")
    for depth in options.depth:
        rates = {rate: run(engine, depth, rate) for rate in (0.0, 0.5, 0.8)}
        print(f"  {depth} drafts: " + ", ".join(f"{rate:.0%} right {speed:.1f} tok/s" for rate, speed in rates.items()))
    engine.close()
    gpu.close()


if __name__ == "__main__":
    main()
