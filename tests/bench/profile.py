"""Where a step's or a prompt chunk's time goes on the GPU, by its own clock.

``python -m tests.bench.profile MODEL.gguf [--width 1] [--class step] [--at 16]`` prints, for each kind of launch,
how many there are, microseconds of one when launches of its kind run one after another, bytes of weights it
reads and the share of the card's copy rate that is. The sum is compared with the whole pass. ``--tuned SECONDS``
measures placements first, for as long.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path

from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.program import Dispatch
from app.engine.tuning import tuned
from app.engine.tuning.stopwatch import Stopwatch
from app.engine.types import Arithmetic, ColumnClass, KvFormat
from app.engine.workspace import Run
from tests.bench.loading import load_whole

LAUNCHES = 200


def kinds(dispatches: list[Dispatch]) -> dict[str, list[Dispatch]]:
    """Launches by label and matrix size."""
    found: dict[str, list[Dispatch]] = defaultdict(list)
    for dispatch in dispatches:
        sizes = dict(dispatch.kernel.constants)
        shape = f"{sizes['ROWS']} x {32 * sizes['UNITS']}" if "UNITS" in sizes and "ROWS" in sizes else ""
        found[f"{dispatch.kernel.label} {shape}"].append(dispatch)
    return dict(found)


def weight_bytes(dispatch: Dispatch) -> int:
    """Bytes of all it only reads; activations among them are small."""
    kinds_of = zip(dispatch.kernel.layout, dispatch.slices, strict=True)
    return sum(part.size for kind, part in kinds_of if kind == "read") if "mat" in dispatch.kernel.label else 0


def show(gpu: Gpu, dispatches: list[Dispatch], rate: float) -> None:
    """A line a kind of launch, then the sum and the whole pass."""
    watch = Stopwatch(gpu)
    total = 0.0
    for name, members in sorted(kinds(dispatches).items()):
        repeat = max(1, LAUNCHES // len(members))
        each = watch.time(members * repeat) / repeat / len(members)
        total += each * len(members)
        read = sum(map(weight_bytes, members)) / len(members)
        share = f"{read / 1e6:8.1f} MB {read / each / rate / 1e9:5.0%}" if read and rate else ""
        print(f"    {name:38} {len(members):4} x {each * 1e6:8.2f} us = {each * len(members) * 1e3:8.3f} ms {share}")
    whole = watch.time(dispatches)
    print(f"    {len(dispatches)} launches, sum {total * 1e3:.3f} ms, whole pass {whole * 1e3:.3f} ms")


def launches_of(engine: Engine, kind: ColumnClass, width: int, position: int) -> list[Dispatch]:
    """A whole pass of ``width`` columns at ``position``; a step with its head."""
    programs = engine._programs  # pyright: ignore[reportPrivateUsage]
    engine._staging.records([Run([5] * width, position)], width)  # pyright: ignore[reportPrivateUsage]
    parts = [programs.embed(width), *programs.trunk(kind, width, position + width)]
    if kind is ColumnClass.STEP:
        parts.append(programs.head(width))
    return [d for program in parts for d in program.dispatches]


def with_placements(gpu: Gpu, engine: Engine, path: Path, seconds: float) -> Engine:
    """The engine once more, as a room loads it; placements of the usual budget would be found in several loads."""
    file, began = GgufFile.open(path), time.perf_counter()
    engine.close()
    gpu.caps = tuned(gpu, file, engine.part, engine.options, budget=seconds)
    print(f"{len(gpu.caps.placements)} placements known after {time.perf_counter() - began:.1f} s")
    return Engine.load(gpu, file, engine.part, engine.options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--width", type=int, nargs="*", default=[1])
    parser.add_argument("--class", dest="kind", type=ColumnClass, default=ColumnClass.STEP)
    parser.add_argument("--at", type=int, default=16)
    parser.add_argument("--context", type=int, default=8704)
    parser.add_argument("--arithmetic", type=Arithmetic, default=Arithmetic.FAST)
    parser.add_argument("--rate", type=float, default=4277.0, help="copy rate in GB/s to compare with")
    parser.add_argument("--tuned", type=float, default=0.0, help="seconds to measure placements before")
    options = parser.parse_args()
    columns = max([512, *options.width])
    gpu, engine = load_whole(options.model, options.context, KvFormat.F16, options.arithmetic, columns=columns)
    if options.tuned:
        engine = with_placements(gpu, engine, options.model, options.tuned)
    for width in options.width:
        print(
            f"{options.model.name}, {options.arithmetic.value}, {width} {options.kind.value} columns at {options.at}:"
        )
        show(gpu, launches_of(engine, options.kind, width, options.at), options.rate)
    engine.close()
    gpu.close()


if __name__ == "__main__":
    main()
