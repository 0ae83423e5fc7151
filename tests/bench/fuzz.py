"""Decoders under damaged input: what came of it, how fast, the largest memory and the slowest input.

``python -m tests.bench.fuzz [--inputs 1000000] [--only NAME] [--seed S]``. Ends with 1 and the input in hex
when a decoder raises what it does not document, hangs, or makes a big object of a small input.
"""

from __future__ import annotations

import argparse
import logging
import mmap
import multiprocessing
import resource
import shutil
import sys
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from random import Random
from typing import Any

from tests.fuzzing.files import folder
from tests.fuzzing.guard import Fault, Tally, armed, stretch
from tests.fuzzing.mutate import LONGEST
from tests.fuzzing.targets import TARGETS

WORKERS = 2
BATCH = 2_000
STUCK_S = 120.0
MOST_MEMORY = 4 << 30

_processes = multiprocessing.get_context("fork")


class Notebook:
    """The input that is being read, where another process finds it after a crash."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 4 + 2 * LONGEST)

    def note(self, data: bytes) -> None:
        kept = data[: 2 * LONGEST]
        self._page[: 4 + len(kept)] = len(kept).to_bytes(4, "little") + kept

    def last(self) -> str:
        return self._page[4 : 4 + int.from_bytes(self._page[:4], "little")].hex()


@dataclass
class Worker:
    """A process with its share of the inputs."""

    process: BaseProcess
    pipe: Any
    notebook: Notebook
    heard: float

    @classmethod
    def start(cls, name: str, inputs: int, seed: str) -> Worker:
        ours, theirs = _processes.Pipe(duplex=False)
        notebook = Notebook()
        process = _processes.Process(target=_work, args=(name, inputs, seed, theirs, notebook), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours, notebook, time.monotonic())

    def next(self) -> Tally | str | None:
        """What it tells: a batch's tally, a fault, or None at its end. A crash and a stand-still are faults."""
        try:
            if self.pipe.poll(STUCK_S):
                return self.pipe.recv()
        except EOFError:
            return f"the process ended by itself\n{self.notebook.last()}"
        self.process.kill()
        return f"nothing came for {STUCK_S:.0f} s\n{self.notebook.last()}"


def _work(name: str, inputs: int, seed: str, pipe: Any, notebook: Notebook) -> None:
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    folder.cache_clear()
    rng, began = Random(seed), time.perf_counter()
    try:
        with armed():
            for done in range(0, inputs, BATCH):
                tally = stretch(TARGETS[name], min(BATCH, inputs - done), rng, notebook.note)
                tally.seconds = time.perf_counter() - began
                pipe.send(tally)
        pipe.send(None)
    except Fault as fault:
        pipe.send("\n".join(map(str, fault.args)))
    finally:
        shutil.rmtree(folder(), ignore_errors=True)


def run(name: str, inputs: int, seed: int) -> tuple[Tally, str]:
    """All workers' tallies together, and the fault, if any."""
    share = -(-inputs // WORKERS)
    workers = [Worker.start(name, share, f"{name} {seed} {number}") for number in range(WORKERS)]
    total, fault = Tally(), ""
    for worker in workers:
        while isinstance(told := worker.next(), Tally):
            total.add(told)
        fault = fault or told or ""
    for worker in workers:
        worker.process.join(10)
    return total, fault


def _words(name: str, tally: Tally) -> str:
    rate = tally.inputs / tally.seconds if tally.seconds else 0
    outcomes = ", ".join(f"{count:,} {what}" for what, count in tally.outcomes.most_common())
    peak, length = tally.largest
    slowest, slow_length = tally.slowest
    return (
        f"{name}: {tally.inputs:,} inputs, {rate:,.0f}/s; largest memory {peak / 1024:,.0f} KiB for {length} bytes; "
        f"slowest {slowest * 1000:.0f} ms CPU for {slow_length} bytes\n    {outcomes}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each decoder")
    parser.add_argument("--only", choices=sorted(TARGETS), action="append")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    faults = 0
    for name in options.only or TARGETS:
        tally, fault = run(name, options.inputs, options.seed)
        print(_words(name, tally), flush=True)
        if fault:
            faults += 1
            print(f"    FAULT: {fault}", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
