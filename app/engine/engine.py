"""A layer range of one model on one GPU. Synchronous; one thread owns it; takes and returns plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError, ModelError, PromptError
from app.engine.arch import DenseConfig, read_config
from app.engine.builder import Builder
from app.engine.device import Gpu
from app.engine.gguf import GgufFile
from app.engine.memory import Allocator
from app.engine.model import Cancelled, Loaded, WeightLoader, Weights, plan_weights
from app.engine.ops.attention import splits_within
from app.engine.ops.matvec import Tuning
from app.engine.ops.select import (
    HEADER_WORDS,
    MAX_STOPS,
    ROOM,
    SPACE_WORDS,
    Best,
    read_best,
    read_candidates,
)
from app.engine.program import Dispatch, Program, compile_program
from app.engine.runner import Copy, Encoded, Runner, Ticket
from app.engine.types import Candidates, ColumnClass, Floats, KvFormat, Part
from app.engine.workspace import STEP_COLUMNS, Workspace, make_workspace, record_array, workspace_bytes

STEP_WIDTHS = (1, 2, 4, 8, 16)
PROMPT_WIDTHS = (16, 64, 256)
GPU_TUNING = Tuning(lanes=32, grain=2, teams=4, rows=2, columns=8, fused_norm=True)
SOFTWARE_TUNING = Tuning(lanes=8, grain=4, teams=4, rows=8, columns=1, fused_norm=False)
_SMALLEST_BUCKET = 256


@dataclass(frozen=True)
class Options:
    """``context`` positions are kept, ``pledge`` bytes may be taken, ``prompt_columns`` are read at a time."""

    context: int
    pledge: int
    kv: KvFormat = KvFormat.F16
    prompt_columns: int = 256


@dataclass(frozen=True)
class Footprint:
    """Bytes a part takes on the GPU, known before it is loaded."""

    weights: int
    caches: int
    scratch: int

    @property
    def total(self) -> int:
        return self.weights + self.caches + self.scratch


def footprint(file: GgufFile, part: Part, options: Options, binding: int) -> Footprint:
    """What ``Engine.load`` will allocate for matrices, caches and scratch (vectors and tables add under 1 %)."""
    config = read_config(file)
    weights = plan_weights(file, config, part, binding).nbytes
    caches, scratch = workspace_bytes(config, part, options.prompt_columns, options.context, options.kv)
    return Footprint(weights, caches, scratch)


class Engine:
    """Runs columns through a part of a model.

    Positions are absolute; writing a position forgets everything after it. STEP columns have the same
    bits at any width, PROMPT columns under any chunking.
    """

    def __init__(
        self, gpu: Gpu, config: DenseConfig, part: Part, options: Options, weights: Weights,
        space: Workspace, allocator: Allocator,
    ) -> None:  # fmt: skip
        self.config = config
        self.part = part
        self.options = options
        self.allocator = allocator
        self._gpu = gpu
        self._space = space
        self._weights = weights
        self._runner = Runner(gpu, allocator)
        self._builder = Builder(config, weights, space, tuning_for(gpu), gpu.caps)
        self._programs: dict[tuple[object, ...], Program] = {}

    @classmethod
    def load(
        cls, gpu: Gpu, file: GgufFile, part: Part, options: Options,
        loaded: Loaded | None = None, cancelled: Cancelled | None = None,
    ) -> Engine:  # fmt: skip
        """Loads a part; on any error nothing of it stays on the GPU.

        Raises ModelError, FileError, OutOfMemory, DeviceLost or LoadCancelled.
        """
        config = read_config(file)
        if not 1 <= options.context <= config.context:
            raise ModelError(
                f"The model was made for {config.context} positions, {options.context} were asked for.",
                "Choose a shorter context.",
            )
        plan = plan_weights(file, config, part, gpu.caps.binding)
        allocator = Allocator(gpu, options.pledge)
        try:
            loader = WeightLoader(gpu, allocator, file, config, loaded, cancelled)
            weights = loader.load(plan, part, options.context)
            space = make_workspace(allocator, config, part, options.prompt_columns, options.context, options.kv)
            return cls(gpu, config, part, options, weights, space, allocator)
        except BaseException:
            allocator.free_all()
            raise

    def close(self) -> None:
        """Frees the part's memory; the GPU stays open."""
        self._programs.clear()
        if not self._gpu.lost:
            self.allocator.free_all()

    # -- columns ------------------------------------------------------------------------------

    def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass) -> Floats:
        """Embeds ``ids`` at ``position`` onwards and runs the own layers: [n, hidden] float32."""
        self._need(self.part.embed, "embedding")
        self._check_ids(ids)
        return self._columns(list(ids), None, position, kind)

    def hidden(self, states: Floats, position: int, kind: ColumnClass) -> Floats:
        """Runs the own layers over [n, hidden] states that came from another part."""
        if states.ndim != 2 or states.shape[1] != self.config.hidden:
            raise ModelError(f"States of shape {states.shape} do not fit a hidden size of {self.config.hidden}.")
        return self._columns([0] * len(states), np.ascontiguousarray(states, np.float32), position, kind)

    def logits(self, states: Floats) -> Floats:
        """[n, vocab] float32 of [n, hidden] states, at most 16 columns."""
        return self._head(states)[1]

    def candidates(self, states: Floats) -> list[Candidates]:
        """The 64 best ids of each of up to 16 columns."""
        blocks = self._head(states, rows=False)[0]
        return [self._candidates(block, column) for column, block in enumerate(blocks)]

    def decode(self, token: int, position: int) -> Candidates:
        """One step where all layers are here: embedding, layers and head in one submit."""
        self._need(self.part.embed and self.part.head, "whole model")
        self._check_ids([token])
        self._check_room(position, 1)
        self._write_records([token], position, 1)
        programs = [self._embed(1), self._trunk(ColumnClass.STEP, 1, position + 1), self._head_program(1)]
        return self._candidates(self._blocks(self._runner.run(programs, self._result_copies(1)), 1)[0], 0)

    def greedy(self, token: int, position: int, stops: Sequence[int], limit: int) -> Iterator[int]:
        """The greedy continuation after ``token``, encoded and submitted one step ahead.

        Ends after a stop id (which is yielded), ``limit`` ids or a full context. Steps already under
        way when a stop id comes write no state. Raises GpuError for logits that are not finite.
        """
        self._need(self.part.embed and self.part.head, "whole model")
        self._check_ids([token])
        self._check_room(position, 1)
        count = min(limit, self.options.context - position)
        self._write_records([token], position, 1)
        self._write_stops(stops)
        pending: list[Ticket] = []
        try:
            for step in range(count + 1):
                if step < count:
                    pending.append(self._runner.submit(self._greedy_step(position + step)))
                if step == 0 and count > 1:
                    continue
                best = self._best(pending.pop(0))
                yield best.token
                if best.token in stops or not pending:
                    return
        finally:
            for ticket in pending:
                ticket.wait()

    # -- parts of a step ----------------------------------------------------------------------

    def _columns(self, ids: list[int], states: Floats | None, position: int, kind: ColumnClass) -> Floats:
        if not ids:
            raise PromptError("There is nothing to read.")
        self._check_room(position, len(ids))
        most = STEP_COLUMNS if kind is ColumnClass.STEP else self._space.columns
        out: list[Floats] = []
        for start in range(0, len(ids), most):
            chunk = ids[start : start + most]
            part = None if states is None else states[start : start + most]
            out.append(self._chunk(chunk, part, position + start, kind))
        return np.concatenate(out)

    def _chunk(self, ids: list[int], states: Floats | None, position: int, kind: ColumnClass) -> Floats:
        widths = STEP_WIDTHS if kind is ColumnClass.STEP else PROMPT_WIDTHS
        width = next(w for w in widths if w >= len(ids))
        self._write_records(ids, position, width)
        programs = [self._trunk(kind, width, position + len(ids))]
        if states is None:
            programs.insert(0, self._embed(width))
        else:
            self._write_hidden(states)
        stride = self._space.hidden.stride
        data = self._runner.run(programs, [(self._space.hidden.slice, len(ids) * stride * 4)])
        return data.view(np.float32).reshape(len(ids), stride)[:, : self.config.hidden].copy()

    def _head(self, states: Floats, *, rows: bool = True) -> tuple[NDArray[np.uint32], Floats]:
        self._need(self.part.head, "output head")
        count = len(states)
        if not 1 <= count <= STEP_COLUMNS:
            raise ModelError(f"The head takes 1 to {STEP_COLUMNS} columns, not {count}.")
        assert self._space.logits
        width = next(w for w in STEP_WIDTHS if w >= count)
        self._write_hidden(np.ascontiguousarray(states, np.float32))
        self._write_records([0] * count, 0, width)
        copies = self._result_copies(count)
        stride = self._space.logits.stride
        if rows:
            copies.append((self._space.logits.slice, count * stride * 4))
        data = self._runner.run([self._head_program(width)], copies)
        split = count * SPACE_WORDS * 4
        logits = data[split:].view(np.float32).reshape(-1, stride)[:, : self.config.vocab].copy()
        return self._blocks(data[:split], count), logits

    def _candidates(self, block: NDArray[np.uint32], column: int) -> Candidates:
        if read_best(block).count <= ROOM:
            return read_candidates(block)
        assert self._space.logits
        row = self._space.logits
        data = self._runner.run([], [(row.slice, (column + 1) * row.stride * 4)])
        values = data.view(np.float32).reshape(column + 1, row.stride)[column, : self.config.vocab]
        return read_candidates(block, values)

    def _best(self, ticket: Ticket) -> Best:
        best = read_best(ticket.wait().view(np.uint32))
        if best.non_finite:
            raise GpuError(
                f"{self._gpu.info.name} computed {best.non_finite} numbers that are not finite.",
                "Start the model again; if it repeats, update the driver.",
            )
        return best

    def _greedy_step(self, position: int) -> Encoded:
        assert self._space.selection
        programs = [
            self._embed(1),
            self._trunk(ColumnClass.STEP, 1, position + 1),
            self._head_program(1, advance=True),
        ]
        return self._runner.encode(programs, [(self._space.selection.result, HEADER_WORDS * 4)])

    # -- programs -----------------------------------------------------------------------------

    def _embed(self, width: int) -> Program:
        return self._program(("embed", width), lambda: self._builder.embed(width))

    def _trunk(self, kind: ColumnClass, width: int, end: int) -> Program:
        """``end`` is one past the last position; its bucket sizes the split grid of step columns."""
        bucket = 0 if kind is ColumnClass.PROMPT else min(_bucket(end), self.options.context)
        splits = splits_within(bucket)
        return self._program((kind, width, splits), lambda: self._builder.trunk(kind, width, splits))

    def _head_program(self, width: int, *, advance: bool = False) -> Program:
        key = ("head", width, advance)
        return self._program(key, lambda: self._builder.head(width, collect=not advance, advance=advance))

    def _program(self, key: tuple[object, ...], build: Callable[[], list[Dispatch]]) -> Program:
        if key not in self._programs:
            self._programs[key] = compile_program(self._gpu, build())
        return self._programs[key]

    # -- small things -------------------------------------------------------------------------

    def _write_records(self, ids: list[int], position: int, width: int) -> None:
        self._runner.write(self._space.records, record_array(ids, position, width))

    def _write_hidden(self, states: Floats) -> None:
        missing = self._space.hidden.stride - states.shape[1]
        self._runner.write(self._space.hidden.slice, np.pad(states, ((0, 0), (0, missing))) if missing else states)

    def _write_stops(self, stops: Sequence[int]) -> None:
        assert self._space.selection
        if len(stops) > MAX_STOPS:
            raise PromptError(f"At most {MAX_STOPS} stop ids are possible, not {len(stops)}.")
        words = np.zeros(MAX_STOPS + 1, np.uint32)
        words[: len(stops) + 1] = [len(stops), *stops]
        self._runner.write(self._space.selection.stops, words)

    def _result_copies(self, count: int) -> list[Copy]:
        assert self._space.selection
        return [(self._space.selection.result, count * SPACE_WORDS * 4)]

    def _blocks(self, data: NDArray[np.uint8], count: int) -> NDArray[np.uint32]:
        return data.view(np.uint32).reshape(count, SPACE_WORDS)

    def _check_room(self, position: int, count: int) -> None:
        if position < 0 or position + count > self.options.context:
            raise PromptError(
                f"Position {position + count} is past the context of {self.options.context}.",
                "Start a new chat or choose a longer context.",
            )

    def _check_ids(self, ids: Sequence[int]) -> None:
        if any(not 0 <= i < self.config.vocab for i in ids):
            raise PromptError(f"A token id is outside the vocabulary of {self.config.vocab}.")

    def _need(self, present: bool, what: str) -> None:
        if not present:
            raise ModelError(f"This part of the model does not have the {what}.")


def tuning_for(gpu: Gpu) -> Tuning:
    """The fixed default order of summation and placement for a kind of device."""
    return SOFTWARE_TUNING if gpu.caps.software else GPU_TUNING


def _bucket(end: int) -> int:
    size = _SMALLEST_BUCKET
    while size < end:
        size *= 2
    return size
