"""What a step costs after the GPU had nothing to do: ``python -m tests.bench.idle MODEL.gguf [--pause 0 2 10 40]``.

A device of a room waits for the others most of the time. Beside each pause stands the same with the processor kept
awake, and with the GPU stirred every ``--stir`` milliseconds. A GPU's clock follows its load over seconds, so what is
measured first is the fastest.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from app.engine.adapter import choose_adapter
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.options import arithmetic_for
from app.engine.types import ColumnClass, KvFormat
from tests.bench.loading import load_whole

STEPS = 40
WARM = 8


def asleep(_engine: Engine, until: float, _every: float) -> None:
    time.sleep(max(0.0, until - time.perf_counter()))


def processor_awake(_engine: Engine, until: float, _every: float) -> None:
    while time.perf_counter() < until:
        pass


def stirred(engine: Engine, until: float, every: float) -> None:
    """As a room does between steps."""
    while (now := time.perf_counter()) < until:
        engine.stir()
        time.sleep(max(0.0, min(every, until - now - every)))


def step(engine: Engine, pause: float, every: float, rest: Callable[[Engine, float, float], None]) -> float:
    """Median ms of a step behind a pause."""
    took: list[float] = []
    for i in range(WARM + STEPS):
        rest(engine, time.perf_counter() + pause, every)
        began = time.perf_counter()
        engine.decode(5, 32 + i)
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took[WARM:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--pause", type=float, nargs="*", default=[0, 2, 5, 10, 40], help="ms")
    parser.add_argument("--stir", type=float, default=1.0, help="ms")
    options = parser.parse_args()
    gpu, engine = load_whole(options.model, 512, KvFormat.F16, arithmetic_for(Gpu.open(choose_adapter())))
    engine.tokens([7] * 32, 0, ColumnClass.PROMPT)
    print(f"{gpu.info.name}, {options.model.name}: median ms of a step behind a pause")
    for pause in options.pause:
        rests = (asleep, processor_awake, stirred)
        found = {rest.__name__: step(engine, pause / 1000, options.stir / 1000, rest) for rest in rests}
        print(f"{pause:6.1f} ms | " + ", ".join(f"{name} {ms:.2f}" for name, ms in found.items()), flush=True)
    engine.close()
    gpu.close()


if __name__ == "__main__":
    main()
