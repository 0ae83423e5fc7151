"""A small deterministic model with a real cache: a wrong position, class or rounding changes its words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from app.core.errors import GpuError, PooledError
from app.engine.types import Candidates, ColumnClass, Floats, Part, Sampling
from app.models.table import Contexts, ModelRecord, ModelTable
from app.prompt.chatml import ChatMl
from app.prompt.language import Language
from app.room.halves import float_to_half, half_to_float
from app.room.ports import LoadRequest, Progress

LAYERS, HIDDEN, VOCAB = 6, 16, 260
IM_START, IM_END = 256, 257
LETTERS = range(97, 123)
GIB = 2**30

RECORD = ModelRecord(
    key="toy",
    label="Toy",
    family="llama",
    kind="dense",
    files=(),
    layers=LAYERS,
    hidden=HIDDEN,
    heads=2,
    kv_heads=2,
    head_dim=8,
    vocab=VOCAB,
    trained_context=2048,
    layer_bytes=GIB // 2 - 2**20,
    embed_bytes=GIB // 8,
    output_bytes=0,
    draft_bytes=0,
    scratch_bytes=0,
    contexts=Contexts(2048, 2048),
    picker=True,
)
OTHER = msgspec.structs.replace(RECORD, key="toy-b", label="Toy B")
HUGE = msgspec.structs.replace(RECORD, key="toy-huge", label="Toy Huge", layer_bytes=64 * GIB, picker=False)
TABLE = ModelTable(models=(RECORD, OTHER, HUGE))


@dataclass(frozen=True)
class ToyTokenizer:
    """Ids are bytes, and two special tokens."""

    stop_ids: frozenset[int] = frozenset({IM_END})

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def special(self, text: str) -> int | None:
        return {"<|im_start|>": IM_START, "<|im_end|>": IM_END}.get(text)

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""


LANGUAGE = Language(ToyTokenizer(), ChatMl(ToyTokenizer()))


async def open_language(_record: ModelRecord) -> Language:
    return LANGUAGE


def greedy(candidates: Candidates, sampling: Sampling, position: int) -> int:
    return candidates.best


class ToyModel:
    """Weights, and the rows every layer keeps of what it has seen."""

    def __init__(self) -> None:
        draw = np.random.default_rng(7)
        self.embed = draw.normal(size=(VOCAB, HIDDEN)).astype(np.float32)
        self.own = draw.normal(size=(LAYERS, HIDDEN, HIDDEN)).astype(np.float32) / 2
        self.past = draw.normal(size=(LAYERS, HIDDEN, HIDDEN)).astype(np.float32)
        self.head = draw.normal(size=(VOCAB, HIDDEN)).astype(np.float32)
        self.rows: list[list[Floats]] = [[] for _ in range(LAYERS)]

    def layer(self, i: int, column: Floats, position: int, kind: ColumnClass) -> Floats:
        """Prompt columns come out a little different from step columns, as on a GPU."""
        rows = self.rows[i]
        if position > len(rows):
            raise PooledError(f"Position {position} after {len(rows)} rows.")
        del rows[position:]
        rows.append(column)
        seen = np.mean(rows, axis=0) * (1.01 if kind is ColumnClass.PROMPT else 1.0)
        return np.tanh(column @ self.own[i] + seen @ self.past[i] + 0.01 * position).astype(np.float32)

    def run(self, states: Floats, position: int, kind: ColumnClass, layers: range) -> Floats:
        columns = [states[i] for i in range(states.shape[0])]
        for at, column in enumerate(columns):
            for i in layers:
                column = self.layer(i, column, position + at, kind)
            columns[at] = column
        return np.stack(columns)

    def candidates(self, column: Floats) -> Candidates:
        scores = self.head @ column
        allowed = np.full(VOCAB, -1e9, np.float32)
        allowed[list(LETTERS)] = scores[list(LETTERS)]
        order = np.argsort(-allowed, kind="stable")[:64]
        return Candidates(order.astype(np.int32), allowed[order], 0.0, 0)


def rounded(states: Floats) -> Floats:
    return half_to_float(float_to_half(states))


def one_device(ids: Sequence[int], most: int, cuts: Sequence[int]) -> list[int]:
    """Tokens of one device that rounds where a room's connections would be, and on the way back."""
    model = ToyModel()
    ends = [*cuts, LAYERS]

    def through(tokens: Sequence[int], position: int, kind: ColumnClass) -> Floats:
        states, start = model.embed[list(tokens)], 0
        for end in ends:
            states = model.run(states, position, kind, range(start, end))
            states, start = (rounded(states) if cuts else states), end
        return states

    if len(ids) > 1:
        through(ids[:-1], 0, ColumnClass.PROMPT)
    states, answer = through(ids[-1:], len(ids) - 1, ColumnClass.STEP), []
    while True:
        answer.append(model.candidates(states[-1]).best)
        if len(answer) == most:
            return answer
        states = through(answer[-1:], len(ids) + len(answer) - 1, ColumnClass.STEP)


@dataclass
class ToyCompute:
    """``ports.Compute`` over the toy model; counts what it ran."""

    model: ToyModel = field(default_factory=ToyModel)
    part: Part | None = None
    loads: list[LoadRequest] = field(default_factory=list[LoadRequest])
    prompt_columns: int = 0
    step_columns: int = 0
    fail_load: bool = False
    slow_load: asyncio.Event | None = None

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        self.part = None
        progress(0.5)
        if self.slow_load is not None:
            await self.slow_load.wait()
        if self.fail_load:
            raise GpuError("The GPU is full.", "Lend less.")
        self.loads.append(request)
        self.part, self.model = request.part, ToyModel()
        progress(1.0)

    async def unload(self) -> None:
        self.part = None

    def _loaded(self) -> Part:
        if self.part is None:
            raise PooledError("Nothing is loaded.")
        return self.part

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass) -> Floats:
        assert self._loaded().embed
        return await self.hidden(self.model.embed[list(ids)], position, kind)

    async def hidden(self, states: Floats, position: int, kind: ColumnClass) -> Floats:
        part = self._loaded()
        await asyncio.sleep(0)
        if kind is ColumnClass.PROMPT:
            self.prompt_columns += states.shape[0]
        else:
            self.step_columns += states.shape[0]
        return self.model.run(states, position, kind, range(part.lo, part.hi))

    async def candidates(self, states: Floats) -> list[Candidates]:
        assert self._loaded().head
        return [self.model.candidates(state) for state in states]

    async def decode(self, token: int, position: int) -> Candidates:
        states = await self.tokens([token], position, ColumnClass.STEP)
        return self.model.candidates(states[-1])

    async def reset(self) -> None:
        self.model.rows = [[] for _ in range(LAYERS)]
