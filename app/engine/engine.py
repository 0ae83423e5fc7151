"""A layer range of one model on one GPU. Synchronous; one thread owns it; takes and returns plain values."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from app.core.errors import GpuError, ModelError, PromptError, StateError
from app.engine.arch import Mixer, ModelConfig, read_config
from app.engine.builder import Builder
from app.engine.chunks import Chunk, Chunks
from app.engine.device import Gpu
from app.engine.gguf import GgufFile
from app.engine.memory import Allocator
from app.engine.model import Cancelled, Loaded, WeightLoader, Weights, plan_weights
from app.engine.ops.rope import check_cache
from app.engine.options import Options, tuning_for
from app.engine.program import Program
from app.engine.programs import PROMPT_WIDTHS, Programs, width_of
from app.engine.recorder import Recorder
from app.engine.runner import Encoded, Runner, Ticket
from app.engine.shaping import best_of
from app.engine.snapshots import Snapshots, state_signature
from app.engine.staging import Staging
from app.engine.standing import UNKNOWN, Standing
from app.engine.types import STEP_COLUMNS, Candidates, ColumnClass, Floats, Part, Shaping, Step, Stepped
from app.engine.workspace import Run, Workspace, make_workspace


class Engine:
    """Runs columns through a part of a model.

    Positions are absolute; writing a position forgets everything after it. A model with recurrent layers
    can go back only over the columns of its last step; StateError otherwise. STEP columns have the same
    bits at any width, PROMPT columns under any chunking.
    """

    def __init__(
        self, gpu: Gpu, config: ModelConfig, part: Part, options: Options, weights: Weights,
        space: Workspace, allocator: Allocator, signature: str,
    ) -> None:  # fmt: skip
        self.config = config
        self.part = part
        self.options = options
        self.allocator = allocator
        self.signature = signature
        self._gpu = gpu
        self._space = space
        self._runner = Runner(gpu, allocator)
        self._recorder = Recorder(self._runner)
        builder = Builder(config, weights, space, tuning_for(gpu), gpu.caps, options.arithmetic)
        self._programs = Programs(gpu, builder, options.context, part.layers)
        self._snapshots = Snapshots(config, space, allocator, self._runner)
        self._chunks = Chunks(self._runner, self._recorder)
        self._staging = Staging(config, space, self._runner, gpu.info.name)
        self._recurrent = Mixer.DELTA in config.mixers[part.lo : part.hi]
        self._standing = [Standing()] * options.sequences

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
        if options.prompt_columns not in PROMPT_WIDTHS or options.sequences < 1:
            raise ModelError(f"Prompts are read in chunks of {', '.join(map(str, PROMPT_WIDTHS))} columns.")
        if part.draft and not (config.drafts and part.head):
            raise ModelError("The draft block needs a model that has one, and its head beside it.")
        check_cache(config.heads, options.kv)
        plan = plan_weights(file, config, part, gpu.caps.binding)
        allocator = Allocator(gpu, options.pledge)
        try:
            loader = WeightLoader(gpu, allocator, file, config, loaded, cancelled)
            weights = loader.load(plan, part, options.context)
            space = make_workspace(
                allocator, config, part, options.prompt_columns, options.context, options.kv, options.sequences
            )
            signature = state_signature(file, part, options, tuning_for(gpu))
            return cls(gpu, config, part, options, weights, space, allocator, signature)
        except BaseException:
            allocator.free_all()
            raise

    def close(self) -> None:
        """Frees the part's memory; the GPU stays open."""
        self._recorder.forget()
        self._programs.clear()
        if not self._gpu.lost:
            self.allocator.free_all()

    # -- columns ------------------------------------------------------------------------------

    def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        """Embeds ``ids`` at ``position`` onwards and runs the own layers: [n, hidden] float32."""
        self._need(self.part.embed, "embedding")
        self._check_ids(ids)
        return self._columns(list(ids), None, position, kind, sequence)

    def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        """Runs the own layers over [n, hidden] states that came from another part."""
        return self._columns([0] * len(states), self._staging.checked(states), position, kind, sequence)

    def logits(self, states: Floats) -> Floats:
        """[n, vocab] float32 of [n, hidden] states, at most 16 columns."""
        return self._staging.logits(self._runner.run([self._head(states)], [self._staging.logit_copy(len(states))]))

    def candidates(self, states: Floats, shaping: Shaping | None = None) -> list[Candidates]:
        """The 64 best ids of each of up to 16 columns after ``shaping``; its masks are [n, words]."""
        if shaping is not None and shaping.bias:
            return best_of(self.logits(states), shaping)
        data = self._recorder.run(
            [self._head(states, shaping.masks if shaping is not None else None)], [self._staging.best_copy(len(states))]
        )
        return self._staging.results(data, len(states))[0]

    def decode(self, token: int, position: int, sequence: int = 0) -> Candidates:
        """A step of one column."""
        return self.step([Step([token], position, sequence)])[0].candidates[0]

    def step(self, steps: Sequence[Step], *, states: bool = False) -> list[Stepped]:
        """Steps of several sequences in one pass, where all layers are here; each has the bits it has alone.

        Together they have at most 16 columns. Embedding, layers and head take one submit.
        """
        self._need(self.part.embed and self.part.head, "whole model")
        runs, count = self._runs(steps), sum(len(step.ids) for step in steps)
        width = width_of(ColumnClass.STEP, count)
        self._staging.records(runs, width)
        with self._stepping(runs, ColumnClass.STEP):
            copies = [self._staging.best_copy(count), *([self._staging.state_copy(count)] if states else [])]
            candidates, rest = self._staging.results(self._recorder.run(self._whole(runs, width), copies), count)
        hidden = self._staging.hidden(rest)
        firsts = list(accumulate((len(step.ids) for step in steps), initial=0))
        return [Stepped(candidates[a:b], hidden[a:b] if states else None) for a, b in pairwise(firsts)]

    def _runs(self, steps: Sequence[Step]) -> list[Run]:
        if not all(step.ids for step in steps) or not 1 <= sum(len(step.ids) for step in steps) <= STEP_COLUMNS:
            raise PromptError(f"A pass takes 1 to {STEP_COLUMNS} columns, and a step at least one.")
        if len({step.sequence for step in steps}) != len(steps):
            raise PromptError("A sequence can take one step at a time.")
        self._check_ids([token for step in steps for token in step.ids])
        return [self._run(step.ids, step.position, step.sequence) for step in steps]

    def _whole(self, runs: Sequence[Run], width: int) -> list[Program]:
        end = max(run.position + len(run.ids) for run in runs)
        trunk = self._programs.trunk(ColumnClass.STEP, width, end)
        return [self._programs.embed(width), *trunk, self._programs.head(width)]

    def greedy(self, token: int, position: int, stops: Sequence[int], limit: int, sequence: int = 0) -> Iterator[int]:
        """The greedy continuation after ``token``, encoded and submitted one step ahead.

        Ends after a stop id (which is yielded), ``limit`` ids or a full context. Steps already under
        way when a stop id comes write no state. Raises GpuError for logits that are not finite.
        """
        self._need(self.part.embed and self.part.head, "whole model")
        self._check_ids([token])
        run, count = self._run([token], position, sequence), min(limit, self.options.context - position)
        if count < 1:
            return
        self._staging.records([run], 1)
        self._staging.stops(stops)
        pending: list[Ticket] = []
        standing = self._standing[sequence]
        self._standing[sequence] = UNKNOWN
        try:
            for step in range(count + 1):
                if step < count:
                    pending.append(self._runner.submit(self._greedy_step(position + step)))
                    standing = Standing(position + step, position + step + 1)
                if step == 0 and count > 1:
                    continue
                try:
                    best = self._staging.best(pending.pop(0))
                except GpuError:
                    standing = UNKNOWN
                    raise
                if best.token in stops:
                    standing = Standing(best.position, best.position + 1)
                yield best.token
                if best.token in stops or not pending:
                    return
        finally:
            self._standing[sequence] = standing
            for ticket in pending:
                ticket.wait()

    # -- drafts -------------------------------------------------------------------------------

    def learn(self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> None:
        """Shows the draft block known columns: ``before`` [n, hidden] is the trunk's state before each of ``ids``."""
        self._need(self.part.draft, "draft block")
        self._check_ids(ids)
        self._check_sequence(sequence)
        self._check_room(position, len(ids))
        states = self._staging.checked(before)
        if len(states) != len(ids):
            raise ModelError(f"{len(states)} states were given for {len(ids)} tokens.")
        most = self._most(kind)
        for start in range(0, len(ids), most):
            chunk = ids[start : start + most]
            width, first = width_of(kind, len(chunk)), position + start
            self._staging.records([Run(chunk, first, sequence)], width)
            self._staging.before(states[start : start + most])
            run = self._recorder.run if kind is ColumnClass.STEP else self._runner.run
            run([self._programs.draft(kind, width, first + len(chunk), first=True)])

    def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        """``count`` guesses of what follows ``token``; ``before`` [hidden] is the trunk's state before it."""
        self._need(self.part.draft, "draft block")
        self._check_ids([token])
        self._check_sequence(sequence)
        self._check_room(position, count)
        self._staging.records([Run([token], position, sequence)], 1)
        self._staging.stops(())
        self._staging.before(self._staging.checked(before[None]))
        pending = [self._runner.submit(self._draft_step(position + i, first=i == 0)) for i in range(count)]
        try:
            return [self._staging.best(pending.pop(0)).token for _ in range(count)]
        finally:
            for ticket in pending:
                ticket.wait()

    def draft_logits(self, ids: Sequence[int], before: Floats, position: int, sequence: int = 0) -> Floats:
        """[n, vocab] what the draft block expects after each of up to 16 known columns."""
        if not 1 <= len(ids) <= STEP_COLUMNS:
            raise PromptError(f"1 to {STEP_COLUMNS} columns have draft logits at once, not {len(ids)}.")
        self.learn(ids, before, position, ColumnClass.STEP, sequence)
        head = self._programs.draft_head(width_of(ColumnClass.STEP, len(ids)), advance=False)
        return self._staging.logits(self._runner.run([head], [self._staging.logit_copy(len(ids))]))

    # -- state --------------------------------------------------------------------------------

    @property
    def saved(self) -> list[str]:
        """Names of the states that are kept on the GPU."""
        return self._snapshots.names

    def save(self, name: str, end: int | None = None, sequence: int = 0) -> None:
        """Keeps a copy of a sequence, of the positions below ``end`` where its last step went too far.

        Raises OutOfMemory past the pledge, StateError for an end that is gone.
        """
        self._snapshots.save(name, sequence, self._settled(sequence, end))

    def restore(self, name: str, sequence: int = 0) -> int:
        """Brings a kept copy back and returns the position that comes next; StateError if there is none."""
        self._check_sequence(sequence)
        self._snapshots.check(name)
        self._standing[sequence] = UNKNOWN
        end = self._snapshots.load(name, sequence)
        self._standing[sequence] = Standing(end, end)
        return end

    def drop(self, name: str) -> None:
        """Forgets a kept copy."""
        self._snapshots.drop(name)

    def export(self, end: int | None = None, sequence: int = 0) -> tuple[int, Iterator[NDArray[np.uint8]]]:
        """The position that comes next, and the sequence's bytes in pieces, to be read before anything else runs."""
        end = self._settled(sequence, end)
        return end, self._snapshots.read(sequence, end)

    def adopt(self, end: int, data: NDArray[np.uint8], sequence: int = 0) -> None:
        """Takes over exported bytes; StateError unless they are exactly those of ``end`` positions."""
        self._check_sequence(sequence)
        self._check_room(end, 0)
        self._snapshots.write(sequence, end, data)
        self._standing[sequence] = Standing(end, end)

    def _settled(self, sequence: int, end: int | None = None) -> int:
        """Brings a sequence's recurrent states up to ``end``, by default all of it; the rest is forgotten."""
        self._check_sequence(sequence)
        standing = self._standing[sequence]
        if standing == UNKNOWN:
            raise StateError("A conversation that failed midway cannot be saved.", "Start again from the beginning.")
        end = standing.end if end is None else end
        self._check_room(end, 0)
        if end > standing.end:
            raise StateError(f"Position {end} was not computed: this sequence ends at {standing.end}.")
        if self._recurrent and (replay := standing.replay(end)):
            self._staging.records([Run((), end, sequence, replay)], 1)
            self._runner.run([self._programs.settle()])
        self._standing[sequence] = Standing(end, end)
        return end

    # -- parts of a step ----------------------------------------------------------------------

    def _columns(
        self, ids: list[int], states: Floats | None, position: int, kind: ColumnClass, sequence: int
    ) -> Floats:
        if not ids:
            raise PromptError("There is nothing to read.")
        self._check_room(position, len(ids))
        most, out, under_way = self._most(kind), list[Floats](), deque[Chunk]()
        try:
            for start in range(0, len(ids), most):
                part = None if states is None else states[start : start + most]
                under_way.append(self._start(ids[start : start + most], part, position + start, kind, sequence))
                if len(under_way) > self._ahead:
                    out.append(self._floats(under_way.popleft(), sequence))
            while under_way:
                out.append(self._floats(under_way.popleft(), sequence))
        finally:
            for chunk in under_way:
                self._chunks.wait(chunk)
        return np.concatenate(out)

    @property
    def _ahead(self) -> int:
        """Chunks that may run before the last one is read: one, where the pledge has room for what it reads back."""
        return 1 if self.allocator.used + 2 * self._space.hidden.slice.size <= self.allocator.pledge else 0

    def _start(self, ids: list[int], states: Floats | None, position: int, kind: ColumnClass, sequence: int) -> Chunk:
        run, width = self._run(ids, position, sequence), width_of(kind, len(ids))
        self._staging.records([run], width)
        programs = self._programs.trunk(kind, width, position + len(ids))
        if states is None:
            programs.insert(0, self._programs.embed(width))
        else:
            self._staging.states(states)
        copies = [self._staging.state_copy(len(ids))]
        with self._stepping([run], kind):
            paced = kind is ColumnClass.PROMPT and bool(programs)
            return self._chunks.start(programs, width, len(ids), copies, paced=paced)

    def _floats(self, chunk: Chunk, sequence: int) -> Floats:
        standing, self._standing[sequence] = self._standing[sequence], UNKNOWN
        data = self._chunks.wait(chunk)
        self._standing[sequence] = standing
        return self._staging.hidden(data)

    def _head(self, states: Floats, masks: NDArray[np.uint32] | None = None) -> Program:
        """The head over ``states``, which stand ready for it."""
        self._need(self.part.head, "output head")
        count = len(states)
        if not 1 <= count <= STEP_COLUMNS:
            raise ModelError(f"The head takes 1 to {STEP_COLUMNS} columns, not {count}.")
        width = width_of(ColumnClass.STEP, count)
        self._staging.states(self._staging.checked(states))
        self._staging.records([Run([0] * count, 0)], width)
        if masks is not None:
            self._staging.masks(masks, count)
        return self._programs.head(width, masked=masks is not None)

    def _greedy_step(self, position: int) -> Encoded:
        programs = [
            self._programs.embed(1),
            *self._programs.trunk(ColumnClass.STEP, 1, position + 1),
            self._programs.head(1, advance=True),
        ]
        return self._runner.encode(programs, [self._staging.header_copy()])

    def _draft_step(self, position: int, *, first: bool) -> Encoded:
        block = self._programs.draft(ColumnClass.STEP, 1, position + 1, first=first)
        return self._runner.encode([block, self._programs.draft_head(1, advance=True)], [self._staging.header_copy()])

    # -- small things -------------------------------------------------------------------------

    def _run(self, ids: Sequence[int], position: int, sequence: int) -> Run:
        self._check_room(position, len(ids))
        self._check_sequence(sequence)
        replay = self._standing[sequence].replay(position) if self._recurrent else 0
        return Run(ids, position, sequence, replay)

    @contextmanager
    def _stepping(self, runs: Sequence[Run], kind: ColumnClass) -> Generator[None]:
        """Where the sequences stand is unknown until the pass has ended well."""
        for run in runs:
            self._standing[run.sequence] = UNKNOWN
        yield
        for run in runs:
            after = Standing.stepped if kind is ColumnClass.STEP else Standing.prompted
            self._standing[run.sequence] = after(run.position, len(run.ids))

    def _most(self, kind: ColumnClass) -> int:
        return STEP_COLUMNS if kind is ColumnClass.STEP else self._space.columns

    def _check_room(self, position: int, count: int) -> None:
        if position < 0 or position + count > self.options.context:
            raise PromptError(
                f"Position {position + count} is past the context of {self.options.context}.",
                "Start a new chat or choose a longer context.",
            )

    def _check_sequence(self, sequence: int) -> None:
        if not 0 <= sequence < self.options.sequences:
            raise PromptError(f"There is no sequence {sequence}; {self.options.sequences} are kept.")

    def _check_ids(self, ids: Sequence[int]) -> None:
        if any(not 0 <= i < self.config.vocab for i in ids):
            raise PromptError(f"A token id is outside the vocabulary of {self.config.vocab}.")

    def _need(self, present: bool, what: str) -> None:
        if not present:
            raise ModelError(f"This part of the model does not have the {what}.")
