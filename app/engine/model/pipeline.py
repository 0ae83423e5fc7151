"""Reads and rearranges matrices on a few threads, ahead of the one that uploads them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from app.engine.gguf import GgufFile
from app.engine.weights.layout import Packed
from app.engine.weights.matrix import MatrixPlan, pack_block

THREADS = min(max((os.cpu_count() or 2) - 1, 1), 8)
AHEAD_BYTES = 768 << 20
"""Rearranged bytes that wait for their upload, at most, beside one block each thread."""


def packed_blocks(file: GgufFile, plans: Iterable[MatrixPlan]) -> Generator[Packed]:
    """Every block of every matrix in order; FileError if the file shrank meanwhile."""
    work = [(plan, lo, hi) for plan in plans for lo, hi in plan.cuts]
    waiting: deque[tuple[Future[Packed], int]] = deque()
    ahead = 0
    with ThreadPoolExecutor(THREADS, thread_name_prefix="weights") as pool:
        try:
            for plan, lo, hi in work:
                size = plan.bytes_of(hi - lo)
                while waiting and ahead + size > AHEAD_BYTES:
                    done, freed = waiting.popleft()
                    ahead -= freed
                    yield done.result()
                waiting.append((pool.submit(pack_block, file, plan, lo, hi), size))
                ahead += size
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            for future, _ in waiting:
                future.cancel()
