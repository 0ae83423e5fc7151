"""Which matrices a part needs and how they are joined and cut, known before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.core.errors import ModelError
from app.engine.arch import Mixer, ModelConfig
from app.engine.gguf import GgufFile, TensorInfo
from app.engine.types import Part
from app.engine.weights.matrix import MatrixPlan, Rows, joinable, plan_matrix, whole

Plans = tuple[MatrixPlan, ...]


@dataclass(frozen=True)
class FfnPlan:
    """``router`` is empty in a dense block, ``shared`` where no expert is shared or it is ``joined`` to the others."""

    gate_up: Plans
    down: MatrixPlan
    router: Plans = ()
    shared: FfnPlan | None = None
    joined: bool = False

    def matrices(self) -> Iterator[MatrixPlan]:
        yield from (*self.router, *self.gate_up, self.down)
        if self.shared:
            yield from self.shared.matrices()


@dataclass(frozen=True)
class LayerPlan:
    """One block of the file."""

    index: int
    mixer: Mixer
    inputs: Plans
    output: MatrixPlan
    ffn: FfnPlan

    def matrices(self) -> Iterator[MatrixPlan]:
        yield from (*self.inputs, self.output)
        yield from self.ffn.matrices()


@dataclass(frozen=True)
class DraftPlan:
    """The draft block: ``join`` takes the embedding and the trunk's state."""

    join: MatrixPlan
    layer: LayerPlan

    def matrices(self) -> Iterator[MatrixPlan]:
        yield self.join
        yield from self.layer.matrices()


@dataclass
class WeightPlan:
    """All matrices of a part."""

    layers: list[LayerPlan] = field(default_factory=list[LayerPlan])
    embedding: MatrixPlan | None = None
    head: MatrixPlan | None = None
    draft: DraftPlan | None = None

    def matrices(self) -> Iterator[MatrixPlan]:
        for layer in self.layers:
            yield from layer.matrices()
        yield from (m for m in (self.embedding, self.head) if m)
        if self.draft:
            yield from self.draft.matrices()

    @property
    def nbytes(self) -> int:
        return sum(size for matrix in self.matrices() for size in matrix.sizes())


def plan_weights(file: GgufFile, config: ModelConfig, part: Part, binding: int) -> WeightPlan:
    """Plans a part; ModelError for a tensor that is missing, of another shape or of an unsupported type."""
    if not 0 <= part.lo <= part.hi <= config.layers:
        raise ModelError(f"Layers {part.lo}-{part.hi} do not exist; the model has {config.layers}.")
    planner = _Planner(file, config, binding)
    plan = WeightPlan([planner.layer(i, config.mixers[i]) for i in range(part.lo, part.hi)])
    if part.embed or part.draft or (part.head and config.tied):
        plan.embedding = planner.one(planner.find("token_embd.weight", config.vocab, config.hidden))
    if part.head and not config.tied:
        plan.head = planner.one(planner.find("output.weight", config.vocab, config.hidden))
    if part.draft:
        plan.draft = planner.draft()
    return plan


class _Planner:
    def __init__(self, file: GgufFile, config: ModelConfig, binding: int) -> None:
        self._file = file
        self._config = config
        self._binding = binding

    def find(self, name: str, *shape: int) -> TensorInfo:
        tensor = self._file.tensor(name)
        if tensor.shape != shape:
            raise ModelError(
                f"{name} is {' x '.join(map(str, tensor.shape))} where {' x '.join(map(str, shape))} is needed.",
                "The file does not fit its own description; get another.",
            )
        return tensor

    def one(self, tensor: TensorInfo) -> MatrixPlan:
        return plan_matrix(whole(tensor), self._binding)

    def layer(self, index: int, mixer: Mixer) -> LayerPlan:
        prefix, config = f"blk.{index}.", self._config
        inputs = self._attention(prefix) if mixer is Mixer.ATTENTION else self._delta(prefix)
        inner = config.attention_size if mixer is Mixer.ATTENTION else self._inner
        output = "attn_output" if mixer is Mixer.ATTENTION else "ssm_out"
        return LayerPlan(
            index,
            mixer,
            inputs,
            self.one(self.find(f"{prefix}{output}.weight", config.hidden, inner)),
            self._experts(prefix) if config.experts else self._dense(prefix, "", config.inner),
        )

    def draft(self) -> DraftPlan:
        index, hidden = self._config.layers, self._config.hidden
        join = self.find(f"blk.{index}.nextn.eh_proj.weight", hidden, 2 * hidden)
        return DraftPlan(self.one(join), self.layer(index, Mixer.ATTENTION))

    @property
    def _inner(self) -> int:
        assert self._config.delta
        return self._config.delta.inner

    def _attention(self, prefix: str) -> Plans:
        """q, k, v; where heads are gated, ``attn_q`` holds each head's queries and then its gates."""
        heads, hidden = self._config.heads, self._config.hidden
        per_head = heads.size * (2 if heads.gated else 1)
        q = self.find(prefix + "attn_q.weight", heads.heads * per_head, hidden)
        k, v = (self.find(f"{prefix}attn_{n}.weight", heads.kv_size, hidden) for n in "kv")
        queries = [Rows(q, h * per_head, heads.size) for h in range(heads.heads)]
        gates = [Rows(q, h * per_head + heads.size, heads.size) for h in range(heads.heads)]
        return self._joined([queries if heads.gated else whole(q), whole(k), whole(v), gates if heads.gated else []])

    def _delta(self, prefix: str) -> Plans:
        shape, hidden = self._config.delta, self._config.hidden
        assert shape
        sizes = {"attn_qkv": shape.channels, "attn_gate": shape.inner}
        sizes |= {"ssm_beta": shape.value_heads, "ssm_alpha": shape.value_heads}
        return self._joined([whole(self.find(f"{prefix}{n}.weight", rows, hidden)) for n, rows in sizes.items()])

    def _dense(self, prefix: str, suffix: str, inner: int) -> FfnPlan:
        hidden = self._config.hidden
        gate, up = (self.find(f"{prefix}ffn_{n}{suffix}.weight", inner, hidden) for n in ("gate", "up"))
        down = self.find(f"{prefix}ffn_down{suffix}.weight", hidden, inner)
        return FfnPlan(self._joined([whole(gate), whole(up)]), self.one(down))

    def _experts(self, prefix: str) -> FfnPlan:
        shape, hidden = self._config.experts, self._config.hidden
        assert shape
        gate, up = (self.find(f"{prefix}ffn_{n}_exps.weight", shape.count, shape.inner, hidden) for n in ("gate", "up"))
        down = self.find(f"{prefix}ffn_down_exps.weight", shape.count, hidden, shape.inner)
        router = [whole(self.find(prefix + "ffn_gate_inp.weight", shape.count, hidden))]
        if shape.shared_inner:
            router.append(whole(self.find(prefix + "ffn_gate_inp_shexp.weight", hidden)))
        if not shape.shared_inner:
            return FfnPlan(self._stacks(gate, up, shape.inner), self._stack(whole(down), hidden), self._joined(router))
        inner = shape.shared_inner
        sizes = {"gate": (inner, hidden), "up": (inner, hidden), "down": (hidden, inner)}
        shared = [self.find(f"{prefix}ffn_{n}_shexp.weight", *size) for n, size in sizes.items()]
        alike = all(joinable(pair) for pair in zip((gate, up, down), shared, strict=True)) and joinable((gate, up))
        if alike and shape.shared_inner == shape.inner:
            stacks = self._stacks(gate, up, shape.inner, shared[0], shared[1])
            down_stack = self._stack([*whole(down), *whole(shared[2])], hidden)
            return FfnPlan(stacks, down_stack, self._joined(router), joined=True)
        return FfnPlan(
            self._stacks(gate, up, shape.inner),
            self._stack(whole(down), hidden),
            self._joined(router),
            self._dense(prefix, "_shexp", shape.shared_inner),
        )

    def _stack(self, rows: Sequence[Rows], each: int) -> MatrixPlan:
        return plan_matrix(rows, self._binding, each)

    def _stacks(self, gate: TensorInfo, up: TensorInfo, inner: int, *more: TensorInfo) -> Plans:
        """Each expert's gate rows, then its up rows; two stacks where the types differ. ``more`` are another's."""
        if not joinable((gate, up)):
            return tuple(self._stack(whole(tensor), inner) for tensor in (gate, up))
        pairs = [Rows(tensor, first, inner) for first in range(0, gate.rows, inner) for tensor in (gate, up)]
        return (self._stack([*pairs, *(rows for tensor in more for rows in whole(tensor))], 2 * inner),)

    def _joined(self, groups: Sequence[list[Rows]]) -> Plans:
        """Neighbouring groups of one type form one matrix; their rows lie one after another either way."""
        joined: list[list[Rows]] = []
        for group in (g for g in groups if g):
            if joined and joinable((joined[-1][0].tensor, group[0].tensor)):
                joined[-1] = joined[-1] + group
            else:
                joined.append(group)
        return tuple(plan_matrix(rows, self._binding) for rows in joined)
