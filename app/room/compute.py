"""The engine behind the event loop: one thread owns the GPU, calls go in one by one (design: threads)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from app.core.errors import GpuError, ModelError, PooledError
from app.engine.adapter import copy_speed
from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.draft_model import DraftModel, DraftPlan, plan_draft
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.loading import load_roomy
from app.engine.model import LoadCancelled
from app.engine.options import Options, arithmetic_for, tuning_for
from app.engine.selftest import check_kernels
from app.engine.types import Candidates, ColumnClass, Floats, Part, Shaping, Step, Stepped
from app.models.shelf import Shelf
from app.models.transfer import Stage, Transfer
from app.room.ports import LoadRequest, Progress, State

log = logging.getLogger(__name__)

DOWNLOAD_SHARE = 0.9
"""How much of a loading bar the download takes where there is one."""

T = TypeVar("T")


@dataclass(frozen=True)
class GpuSummary:
    """What a device tells the room about its GPU. ``gbps`` is the measured copy speed, 0 when unknown."""

    name: str
    buffer: int
    binding: int
    gbps: float
    software: bool


class EngineCompute:
    """``ports.Compute`` over a real engine, with its files from a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._gpu: Gpu | None = None
        self._engine: Engine | None = None
        self._draft: DraftModel | None = None
        self._checked: set[object] = set()
        self._closed = False

    async def summary(self) -> GpuSummary:
        """Opens and measures the GPU; GpuError when there is none."""
        return await self._call(self._summary)

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        path, fetched = await self._provide(request, progress)
        loop, cancel = asyncio.get_running_loop(), threading.Event()

        def tell(share: float) -> None:
            loop.call_soon_threadsafe(progress, fetched + (1 - fetched) * share)

        work = asyncio.ensure_future(self._call(lambda: self._load(path, request, tell, cancel)))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            cancel.set()
            await asyncio.wait([work])
            if not work.cancelled() and work.exception() is None:
                await self.unload()
            raise

    async def _provide(self, request: LoadRequest, progress: Progress) -> tuple[Path, float]:
        """The model's file, as far as the part needs it, and the share of the bar its download has taken."""
        fetched = 0.0

        def tell(transfer: Transfer) -> None:
            """Checking what came takes no part of the bar."""
            nonlocal fetched
            if transfer.stage is Stage.CHECK:
                return
            fetched = DOWNLOAD_SHARE
            progress(fetched * transfer.done / max(transfer.total, 1))

        path = await self._shelf.provide_part(request.model, request.part, tell, request.lenders)
        return path, fetched

    async def unload(self) -> None:
        await self._call(self._unload)

    @property
    def sequences(self) -> int:
        return self._engine.options.sequences if self._engine is not None else 1

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        return await self._call(lambda: self._loaded().tokens(ids, position, kind, sequence))

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        return await self._call(lambda: self._loaded().hidden(states, position, kind, sequence))

    async def candidates(self, states: Floats, shaping: Shaping | None = None) -> list[Candidates]:
        return await self._call(lambda: self._loaded().candidates(states, shaping))

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        return await self._call(lambda: self._loaded().step(steps, states=self.drafts))

    async def greedy(self, token: int, position: int, stops: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        return await self._call(lambda: list(self._loaded().greedy(token, position, stops, count, sequence)))

    @property
    def drafts(self) -> bool:
        return self._engine is not None and self._engine.part.draft

    async def learn(
        self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0
    ) -> None:
        await self._call(lambda: self._loaded().learn(ids, before, position, kind, sequence))

    async def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        return await self._call(lambda: self._loaded().draft(token, before, position, count, sequence))

    @property
    def draft_model(self) -> bool:
        return self._draft is not None

    async def guesses(self, ids: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        known = tuple(ids)
        return await self._call(lambda: self._guesses(known, count, sequence))

    @property
    def prompt_chunk(self) -> int:
        return self._engine.options.prompt_columns if self._engine is not None else 1

    @property
    def signature(self) -> str:
        return self._engine.signature if self._engine is not None else ""

    async def save(self, name: str, end: int, sequence: int = 0) -> None:
        await self._call(lambda: self._loaded().save(name, end, sequence))

    async def restore(self, name: str, sequence: int = 0) -> int:
        return await self._call(lambda: self._loaded().restore(name, sequence))

    async def drop(self, name: str) -> None:
        await self._call(lambda: self._loaded().drop(name))

    async def saved(self) -> list[str]:
        return await self._call(lambda: list(self._loaded().saved))

    async def export(self, sequence: int = 0) -> State:
        return await self._call(lambda: self._export(sequence))

    async def adopt(self, name: str, state: State, sequence: int = 0) -> None:
        await self._call(lambda: self._adopt(name, state, sequence))

    async def close(self) -> None:
        """Frees the GPU and ends the thread; nothing happens the second time."""
        if self._closed:
            return
        self._closed = True
        await self._call(self._close)
        self._thread.shutdown(wait=True)

    # -- on the engine's thread ---------------------------------------------------------------

    def _summary(self) -> GpuSummary:
        gpu = self._open()
        info = gpu.info
        return GpuSummary(info.name, info.buffer, info.binding, copy_speed(gpu.adapter), info.software)

    def _open(self) -> Gpu:
        if self._gpu is None or self._gpu.lost:
            self._gpu = Gpu.open()
            self._checked.clear()
        return self._gpu

    def _load(self, path: Path, request: LoadRequest, tell: Progress, cancel: threading.Event) -> None:
        self._unload()
        gpu, file = self._open(), GgufFile.open(path)
        self._check(gpu, file, request)
        config = read_config(file)
        part = replace(request.part, draft=request.part.draft and config.drafts)
        options = Options(request.context, request.pledge, request.kv, arithmetic=arithmetic_for(gpu))
        draft = self._draft_beside(gpu, file, part, options, request.draft)
        left = replace(options, pledge=options.pledge - (draft.options.pledge if draft else 0))
        self._engine = load_roomy(gpu, file, part, left, tell, cancel.is_set)
        if draft is not None:
            self._load_draft(gpu, draft, request, cancel)

    def _draft_beside(self, gpu: Gpu, file: GgufFile, part: Part, options: Options, key: str) -> DraftPlan | None:
        """The wished draft model, where it lies here and suits the part."""
        path = self._shelf.kept(key) if key else None
        try:
            return plan_draft(file, part, options, GgufFile.open(path), gpu) if path is not None else None
        except PooledError as error:
            log.warning("%s does not draft: %s", key, error)
            return None

    def _load_draft(self, gpu: Gpu, plan: DraftPlan, request: LoadRequest, cancel: threading.Event) -> None:
        """Without it the model runs all the same."""
        try:
            self._check(gpu, plan.file, replace(request, kv=plan.options.kv))
            self._draft = plan.load(gpu, cancel.is_set)
        except PooledError as error:
            log.warning("%s does not draft: %s", request.draft, error)
        except LoadCancelled:
            self._unload()
            raise

    def _guesses(self, ids: Sequence[int], count: int, sequence: int) -> list[int]:
        """A draft model whose numbers are none is of no use in the next answer either."""
        try:
            return self._draft.guesses(ids, count, sequence) if self._draft else []
        except GpuError:
            self._drop_draft()
            raise

    def _export(self, sequence: int) -> State:
        end, pieces = self._loaded().export(sequence=sequence)
        return State(end, np.concatenate([np.zeros(0, np.uint8), *pieces]))

    def _adopt(self, name: str, state: State, sequence: int) -> None:
        self._loaded().adopt(state.end, state.data, sequence)
        self._loaded().save(name, sequence=sequence)

    def _check(self, gpu: Gpu, file: GgufFile, request: LoadRequest) -> None:
        """The self-test, once for each family of kernels."""
        config, arithmetic = read_config(file), arithmetic_for(gpu)
        kinds = frozenset(t.kind for t in file.tensors.values() if len(t.shape) >= 2)
        key = kinds, config.heads, config.experts, config.delta, request.kv
        if key not in self._checked:
            check_kernels(
                gpu, kinds, config.heads, request.kv, tuning_for(gpu),
                experts=config.experts, delta=config.delta, arithmetic=arithmetic,
            )  # fmt: skip
            self._checked.add(key)

    def _unload(self) -> None:
        if self._engine:
            self._engine.close()
            self._engine = None
        self._drop_draft()

    def _drop_draft(self) -> None:
        if self._draft:
            self._draft.close()
            self._draft = None

    def _close(self) -> None:
        self._unload()
        if self._gpu:
            self._gpu.close()
            self._gpu = None

    def _loaded(self) -> Engine:
        if self._engine is None:
            raise ModelError("No model is loaded on this device.", "Start one first.")
        return self._engine

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: _typed(work))


def _typed(work: Callable[[], T]) -> T:
    """The border of the engine's thread: whatever goes wrong leaves it as one of our errors."""
    try:
        return work()
    except (PooledError, LoadCancelled):
        raise
    except Exception as error:
        log.exception("the engine's thread met an unexpected error")
        raise GpuError(f"The engine failed: {error}", "Start the model again.") from error
