"""A small deterministic model with a real cache: a wrong position, class or rounding changes its words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from app.core.errors import DeviceLost, GpuError, OutOfMemory, PooledError, StateError
from app.engine.shaping import best_of
from app.engine.types import STEP_COLUMNS, Candidates, ColumnClass, Floats, Part, Sampling, Shaping, Step, Stepped
from app.models.table import Contexts, ModelRecord, ModelTable
from app.prompt.chatml import ChatMl
from app.prompt.language import Language
from app.room.generate import Choose
from app.room.halves import float_to_half, half_to_float
from app.room.ports import LoadRequest, Progress, State

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
HYBRID = msgspec.structs.replace(RECORD, key="toy-hybrid", label="Toy Hybrid", kind="hybrid", draft_bytes=GIB // 4)
HUGE = msgspec.structs.replace(RECORD, key="toy-huge", label="Toy Huge", layer_bytes=64 * GIB, picker=False)
TABLE = ModelTable(models=(RECORD, OTHER, HYBRID, HUGE))


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


class Rows:
    """What a layer has seen: at every position the sum of the columns up to it."""

    def __init__(self, rows: Floats | None = None) -> None:
        self._count = 0 if rows is None else len(rows)
        self._data = np.zeros((4096, HIDDEN), np.float32)
        self._data[: self._count] = 0 if rows is None else rows

    def __len__(self) -> int:
        return self._count

    @property
    def data(self) -> Floats:
        return self._data[: self._count]

    def put(self, position: int, column: Floats) -> Floats:
        """In its place, with nothing after it; the mean of all up to it."""
        self._data[position] = column + (self._data[position - 1] if position else 0)
        self._count = position + 1
        return self._data[position] / np.float32(self._count)


class ToyModel:
    """Weights, and the rows every layer keeps of what it has seen of one conversation.

    A recurrent one could go back from ``end`` to ``committed``.
    """

    def __init__(self) -> None:
        self.committed = self.end = 0
        draw = np.random.default_rng(7)
        self.embed = draw.normal(size=(VOCAB, HIDDEN)).astype(np.float32)
        self.own = draw.normal(size=(LAYERS, HIDDEN, HIDDEN)).astype(np.float32) / 2
        self.past = draw.normal(size=(LAYERS, HIDDEN, HIDDEN)).astype(np.float32)
        self.head = draw.normal(size=(VOCAB, HIDDEN)).astype(np.float32)
        self.rows = [Rows() for _ in range(LAYERS)]

    def layer(self, i: int, column: Floats, position: int, kind: ColumnClass) -> Floats:
        """Prompt columns come out a little different from step columns, as on a GPU."""
        rows = self.rows[i]
        if position > len(rows):
            raise PooledError(f"Position {position} after {len(rows)} rows.")
        seen = rows.put(position, column) * (1.01 if kind is ColumnClass.PROMPT else 1.0)
        return np.tanh(column @ self.own[i] + seen @ self.past[i] + 0.01 * position).astype(np.float32)

    def run(self, states: Floats, position: int, kind: ColumnClass, layers: range) -> Floats:
        columns = [states[i] for i in range(states.shape[0])]
        for at, column in enumerate(columns):
            for i in layers:
                column = self.layer(i, column, position + at, kind)
            columns[at] = column
        return np.stack(columns)

    def candidates(self, column: Floats, shaping: Shaping | None = None) -> Candidates:
        """Only letters, unless something else is asked for; under a mask everything it allows."""
        scores = self.head @ column
        if shaping is not None:
            return best_of(scores[None], shaping)[0]
        allowed = np.full(VOCAB, -1e9, np.float32)
        allowed[list(LETTERS)] = scores[list(LETTERS)]
        order = np.argsort(-allowed, kind="stable")[:64]
        return Candidates(order.astype(np.int32), allowed[order], 0.0, 0)


def rounded(states: Floats) -> Floats:
    return half_to_float(float_to_half(states))


def one_device(
    ids: Sequence[int], most: int, cuts: Sequence[int], choose: Choose = greedy, sampling: Sampling | None = None
) -> list[int]:
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
        answer.append(choose(model.candidates(states[-1]), sampling or Sampling(), len(ids) + len(answer)))
        if len(answer) == most:
            return answer
        states = through(answer[-1:], len(ids) + len(answer) - 1, ColumnClass.STEP)


Oracle = Callable[[int, int], list[int]]
"""What a draft block would guess for the ``count`` positions from ``position`` on."""
Reader = Callable[[Sequence[int], int], list[int]]
"""What a draft model would guess after a conversation."""


def _each(shaping: Shaping | None, columns: int) -> list[Shaping | None]:
    if shaping is None or shaping.masks is None:
        return [shaping] * columns
    return [Shaping(row[None], shaping.bias) for row in shaping.masks]


@dataclass
class ToyCompute:
    """``ports.Compute`` over the toy model; counts what it ran.

    A hybrid goes back over its last step only, and keeps what it was told to as long as there is room for it.
    ``shown`` is what the draft block saw: token and state before it, by position; ``fed`` what the model did.
    ``small`` is the draft model, loaded where a load asks for one; ``asked`` is what it was given.
    A whole model has ``lanes`` sequences; ``passes`` are the sequences of every pass of steps, ``bursts`` how
    many words were to be drawn at a time.
    """

    lanes: int = 1
    models: list[ToyModel] = field(default_factory=lambda: [ToyModel()])
    passes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    bursts: list[int] = field(default_factory=list[int])
    part: Part | None = None
    loads: list[LoadRequest] = field(default_factory=list[LoadRequest])
    prompt_columns: int = 0
    step_columns: int = 0
    fail_load: bool = False
    slow_load: asyncio.Event | None = None
    guess: Oracle | None = None
    small: Reader | None = None
    hybrid: bool = False
    lost: bool = False
    """The GPU is gone until something is loaded."""
    room: int = 99
    fed: dict[int, int] = field(default_factory=dict[int, int])
    shown: dict[int, tuple[int, Floats]] = field(default_factory=dict[int, tuple[int, Floats]])
    kept: dict[str, State] = field(default_factory=dict[str, State])
    restored: list[int] = field(default_factory=list[int])
    asked: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Length of the conversation and how many guesses, of every call."""
    learned: list[int] = field(default_factory=list[int])
    """Columns of every call."""

    chunk: int = 512

    @property
    def model(self) -> ToyModel:
        return self.models[0]

    @property
    def sequences(self) -> int:
        whole = self.part is not None and self.part.embed and self.part.layers == LAYERS
        return self.lanes if whole else 1

    @property
    def prompt_chunk(self) -> int:
        return self.chunk

    async def load(self, request: LoadRequest, progress: Progress) -> None:
        self.part = None
        progress(0.5)
        if self.slow_load is not None:
            await self.slow_load.wait()
        if self.fail_load:
            raise GpuError("The GPU is full.", "Lend less.")
        self.lost = False
        self.loads.append(request)
        self.part, self.models = request.part, [ToyModel() for _ in range(self.lanes)]
        self.hybrid = TABLE.get(request.model).hybrid
        self.kept = {}
        progress(1.0)

    async def unload(self) -> None:
        self.part = None

    def _loaded(self) -> Part:
        if self.lost:
            raise DeviceLost("The GPU stopped working.", "Start the model again.")
        if self.part is None:
            raise PooledError("Nothing is loaded.")
        return self.part

    async def tokens(self, ids: Sequence[int], position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        assert self._loaded().embed
        self.fed |= {position + i: token for i, token in enumerate(ids)}
        return await self.hidden(self.model.embed[list(ids)], position, kind, sequence)

    async def hidden(self, states: Floats, position: int, kind: ColumnClass, sequence: int = 0) -> Floats:
        part, model = self._loaded(), self.models[sequence]
        await asyncio.sleep(0)
        if kind is ColumnClass.PROMPT:
            self.prompt_columns += states.shape[0]
        else:
            self.step_columns += states.shape[0]
        if self.hybrid and not (position == 0 or model.committed <= position <= model.end):
            raise StateError(f"Position {position} after {model.committed} to {model.end}.")
        model.end = position + states.shape[0]
        model.committed = position if kind is ColumnClass.STEP else model.end
        return model.run(states, position, kind, range(part.lo, part.hi))

    async def candidates(self, states: Floats, shaping: Shaping | None = None) -> list[Candidates]:
        assert self._loaded().head
        return [
            self.model.candidates(state, one) for state, one in zip(states, _each(shaping, len(states)), strict=True)
        ]

    async def step(self, steps: Sequence[Step]) -> list[Stepped]:
        assert sum(len(step.ids) for step in steps) <= STEP_COLUMNS
        self.passes.append(tuple(step.sequence for step in steps))
        return [await self._stepped(step) for step in steps]

    async def _stepped(self, step: Step) -> Stepped:
        states = await self.tokens(step.ids, step.position, ColumnClass.STEP, step.sequence)
        return Stepped(await self.candidates(states), states if self.drafts else None)

    async def greedy(self, token: int, position: int, stops: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        self.bursts.append(count)
        words: list[int] = []
        while len(words) < count and not (words and words[-1] in stops):
            states = await self.tokens(
                [words[-1] if words else token], position + len(words), ColumnClass.STEP, sequence
            )
            words.append(self.model.candidates(states[-1]).best)
        return words

    async def reset(self) -> None:
        for model in self.models:
            model.rows, model.committed, model.end = [Rows() for _ in range(LAYERS)], 0, 0

    @property
    def drafts(self) -> bool:
        return self.guess is not None and self.part is not None and self.part.draft

    async def learn(
        self, ids: Sequence[int], before: Floats, position: int, kind: ColumnClass, sequence: int = 0
    ) -> None:
        self.learned.append(len(ids))
        self.shown |= {position + i: (token, before[i]) for i, token in enumerate(ids)}

    async def draft(self, token: int, before: Floats, position: int, count: int, sequence: int = 0) -> list[int]:
        assert self.guess
        self.shown[position] = (token, before)
        return self.guess(position + 1, count)

    @property
    def draft_model(self) -> bool:
        return self.small is not None and bool(self.loads[-1].draft)

    async def guesses(self, ids: Sequence[int], count: int, sequence: int = 0) -> list[int]:
        assert self.small
        self.asked.append((len(ids), count))
        return self.small(ids, count) if count else []

    @property
    def signature(self) -> str:
        return f"toy {self.part}" if self.part else ""

    async def save(self, name: str, end: int, sequence: int = 0) -> None:
        """Kept as the rows of every layer, one after another."""
        if len(self.kept) >= self.room:
            raise OutOfMemory("There is no room for another one.")
        model = self.models[sequence]
        if not model.committed < end <= model.end and end != model.end:
            raise StateError(f"Not to {end}.")
        model.end = model.committed = end
        self.kept[name] = await self.export(sequence)

    async def export(self, sequence: int = 0) -> State:
        part, model = self._loaded(), self.models[sequence]
        rows = [model.rows[i].data[: model.end] for i in range(part.lo, part.hi)]
        return State(model.end, np.stack(rows).astype(np.float32).reshape(-1).view(np.uint8))

    async def restore(self, name: str, sequence: int = 0) -> int:
        if name not in self.kept:
            raise StateError(f"There is no {name}.")
        state, part, model = self.kept[name], self._loaded(), self.models[sequence]
        rows = state.data.view(np.float32).reshape(part.layers, state.end, HIDDEN)
        for i in range(part.layers):
            model.rows[part.lo + i] = Rows(rows[i])
        model.committed = model.end = state.end
        self.restored.append(state.end)
        return state.end

    async def drop(self, name: str) -> None:
        self.kept.pop(name, None)

    async def saved(self) -> list[str]:
        return list(self.kept)

    async def adopt(self, name: str, state: State, sequence: int = 0) -> None:
        self.kept[name] = state
