"""Reads, rearranges and uploads matrices on a few threads, while the one that owns the GPU waits for them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor

from app.engine.device import THREADS, Gpu
from app.engine.gguf import GgufFile
from app.engine.memory import Arena
from app.engine.weights.matrix import Block, MatrixPlan, load_block, take_streams


def loaded_blocks(gpu: Gpu, file: GgufFile, plans: Iterable[MatrixPlan], arena: Arena) -> Generator[Block]:
    """Every block of every matrix in order, on the GPU; FileError if the file shrank meanwhile, DeviceLost."""
    work = [(plan, lo, hi) for plan in plans for lo, hi in plan.cuts]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="weights") as pool:
        waiting = [
            pool.submit(load_block, gpu, file, plan, lo, hi, take_streams(plan, hi - lo, arena))
            for plan, lo, hi in work
        ]
        try:
            for future in waiting:
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()
