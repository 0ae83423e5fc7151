"""From a model's description and its weights to programs, one a segment and width."""

from __future__ import annotations

from app.engine.arch import ModelConfig
from app.engine.columns import Columns, Input, PromptColumns, StepColumns, reads_whole, sized
from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.mixture import Mixture
from app.engine.model import AttentionMixer, DeltaMixer, ExpertFfn, Layer, Weights
from app.engine.ops import delta, embed, mask, rmsnorm, rope, select
from app.engine.ops.delta import DeltaState
from app.engine.ops.matvec import Activations, Norm, Tuning
from app.engine.ops.rope import Cache
from app.engine.placement import Epilogue
from app.engine.program import Dispatch
from app.engine.types import Arithmetic, ColumnClass
from app.engine.weights.matrix import Matrix
from app.engine.workspace import Workspace


class Builder:
    """Writes the dispatch lists of one loaded part."""

    def __init__(
        self, config: ModelConfig, weights: Weights, space: Workspace, tuning: Tuning, caps: Caps,
        arithmetic: Arithmetic,
    ) -> None:  # fmt: skip
        self._config = config
        self._weights = weights
        self._space = space
        self._tuning = tuning
        self._caps = caps
        self._arithmetic = arithmetic

    def embed(self, columns: int) -> list[Dispatch]:
        """Token ids of the records into the residual stream."""
        assert self._weights.embedding
        blocks = self._weights.embedding.blocks
        return [embed.dispatch(block, self._space.records, self._space.hidden, columns) for block in blocks]

    def trunk(self, kind: ColumnClass, columns: int, splits: int, layers: range) -> list[Dispatch]:
        """Some of the part's layers over the residual stream; ``splits`` is used by step columns only."""
        ops, weights, states = self._columns(kind, columns, splits), self._weights.layers, self._space.states
        return [d for i in layers for d in self._layer(weights[i], states[i], ops)]

    def settle(self) -> list[Dispatch]:
        """Replays one sequence's accepted columns into its recurrent states."""
        assert self._config.delta
        assert self._space.mixed
        return [
            d
            for layer, state in zip(self._weights.layers, self._space.states, strict=True)
            if isinstance(layer.mixer, DeltaMixer) and isinstance(state, DeltaState)
            for d in self._delta(layer.mixer, state, self._columns(ColumnClass.STEP, 1, 1))[0]
        ]

    def head(self, columns: int, *, collect: bool, advance: bool = False, masked: bool = False) -> list[Dispatch]:
        """Output norm, logits and the best id of each column; with ``collect`` also its 64 best.

        ``masked``: only among the ids that the workspace's masks allow.
        """
        assert self._weights.output_norm
        norm = self._norm(self._weights.output_norm)
        return self._choose(columns, self._space.hidden, norm, collect=collect, advance=advance, masked=masked)

    def draft(self, kind: ColumnClass, columns: int, splits: int, *, first: bool) -> list[Dispatch]:
        """The draft block over columns; ``first`` ones stand on the trunk's own states, others on its guesses."""
        space, output_norm = self._space.draft, self._weights.output_norm
        assert space
        assert output_norm
        trunk = [rmsnorm.dispatch(space.before, space.before, self._norm(output_norm), columns)] if first else []
        return [*trunk, *self._draft_layer(self._columns(kind, columns, splits))]

    def draft_head(self, columns: int, *, advance: bool) -> list[Dispatch]:
        """The draft block's logits and best ids; with ``advance`` the records become those of the guesses."""
        assert self._space.draft
        return self._choose(columns, self._space.draft.before, None, collect=False, advance=advance)

    def _columns(self, kind: ColumnClass, count: int, splits: int) -> Columns:
        if kind is ColumnClass.STEP:
            return StepColumns(self._space, self._tuning, self._arithmetic, self._caps, count, splits)
        return PromptColumns(self._space, self._tuning, self._arithmetic, self._caps, count)

    def _choose(
        self, columns: int, x: Activations, norm: Norm | None, *, collect: bool, advance: bool, masked: bool = False
    ) -> list[Dispatch]:
        weights, space, vocab = self._weights, self._space, self._config.vocab
        assert weights.head
        assert space.logits
        assert space.selection
        logits = self._product(self._columns(ColumnClass.STEP, columns, 1), (weights.head,), x, space.logits, norm=norm)
        if masked:
            assert space.masks
            logits.append(mask.dispatch(space.logits, space.masks, vocab, columns))
        best = select.best_dispatches(space.logits, space.records, space.selection, vocab, columns, advance=advance)
        extra = select.collect_dispatches(space.logits, space.selection, vocab, columns)
        return logits + best + (extra if collect else [])

    def _product(
        self, ops: Columns, matrices: tuple[Matrix, ...], x: Activations, y: Activations, *,
        norm: Norm | None = None, epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        before, ready = ops.prepare(x, norm, matrices)
        return [*before, *ops.product(matrices, ready, y, epilogue=epilogue, bias=bias)]

    def _layer(self, layer: Layer, state: Cache | DeltaState, ops: Columns) -> list[Dispatch]:
        return [*self._mixer(layer, state, ops), *self._ffn(layer, ops)]

    def _mixer(self, layer: Layer, state: Cache | DeltaState, ops: Columns) -> list[Dispatch]:
        mixer, space, norm = layer.mixer, self._space, self._norm(layer.mixer_norm)
        if isinstance(mixer, AttentionMixer):
            assert isinstance(state, Cache)
            inputs = self._product(ops, mixer.inputs, space.hidden, space.qkv, norm=norm, bias=mixer.bias)
            attended, x = self._attention(mixer, state, ops)
        else:
            assert isinstance(state, DeltaState)
            assert space.mixed
            inputs = self._product(ops, mixer.inputs, space.hidden, space.mixed, norm=norm)
            attended, x = self._delta(mixer, state, ops)
        return [*inputs, *attended, *ops.product((mixer.output,), x, space.hidden, epilogue=Epilogue.ADD)]

    def _attention(self, mixer: AttentionMixer, cache: Cache, ops: Columns) -> tuple[list[Dispatch], Input]:
        space, heads = self._space, self._config.heads
        turned = rope.dispatch(space.records, space.qkv, cache, self._weights.rope, heads, ops.count, mixer.head_norms)
        launches, x = ops.attention(cache, heads, mixer.output)
        return [turned, *launches], x

    def _delta(self, mixer: DeltaMixer, state: DeltaState, ops: Columns) -> tuple[list[Dispatch], Input]:
        shape, space = self._config.delta, self._space
        assert shape
        assert space.mixed
        out, rounded = sized(space.attended, shape.inner), space.quantised.sized(shape.inner)
        fused = reads_whole(ops, mixer.output) and delta.rounds(shape, self._caps)
        launches = delta.dispatches(
            space.records, space.mixed, state, mixer.delta, rounded if fused else out, shape, ops.count, ops.kind,
            self._caps.shared,
        )  # fmt: skip
        if fused:
            return launches, Input(out, None, rounded)
        before, x = ops.prepare(out, None, (mixer.output,))
        return [*launches, *before], x

    def _ffn(self, layer: Layer, ops: Columns) -> list[Dispatch]:
        ffn, space, norm = layer.ffn, self._space, self._norm(layer.ffn_norm)
        if isinstance(ffn, ExpertFfn):
            assert self._config.experts
            return Mixture(self._config.experts, ffn, space).dispatches(ops, norm)
        before, x = ops.prepare(space.hidden, norm, ffn.gate_up)
        gated, inner = ops.gated(ffn.gate_up, x, self._config.inner, ffn.down)
        return [*before, *gated, *ops.product((ffn.down,), inner, space.hidden, epilogue=Epilogue.ADD)]

    def _draft_layer(self, ops: Columns) -> list[Dispatch]:
        """``before`` holds normed states; it ends as the block's own, the next column's ``before``."""
        draft, space = self._weights.draft, self._space.draft
        assert draft
        assert space
        hidden, columns = self._space.hidden, ops.count
        half = Activations(space.joined.slice, space.joined.stride, self._config.hidden)
        return [
            *self.embed(columns),
            rmsnorm.dispatch(hidden, space.joined, self._norm(draft.embedding_norm), columns),
            rmsnorm.dispatch(space.before, half, self._norm(draft.hidden_norm), columns),
            *self._product(ops, (draft.join,), space.joined, hidden),
            *self._layer(draft.layer, space.cache, ops),
            rmsnorm.dispatch(hidden, space.before, self._norm(draft.output_norm), columns),
        ]

    def _norm(self, weights: Slice) -> Norm:
        return Norm(weights, self._config.hidden, self._config.epsilon)
