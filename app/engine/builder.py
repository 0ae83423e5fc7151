"""From a model's description and its weights to programs, one a segment and width."""

from __future__ import annotations

from itertools import accumulate

from app.engine.arch import DenseConfig
from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.model import Layer, Weights
from app.engine.ops import attention, embed, matmul, matvec, rmsnorm, rope, select, swiglu
from app.engine.ops.matvec import Activations, Epilogue, Norm, Tuning
from app.engine.program import Dispatch
from app.engine.types import ColumnClass
from app.engine.weights.matrix import Matrix
from app.engine.workspace import Workspace


class Builder:
    """Writes the dispatch lists of one loaded part."""

    def __init__(self, config: DenseConfig, weights: Weights, space: Workspace, tuning: Tuning, caps: Caps) -> None:
        self._config = config
        self._weights = weights
        self._space = space
        self._tuning = tuning
        self._caps = caps
        self._threads = attention.SOFTWARE_THREADS if caps.software else attention.THREADS

    def embed(self, columns: int) -> list[Dispatch]:
        """Token ids of the records into the residual stream."""
        assert self._weights.embedding
        blocks = self._weights.embedding.blocks
        return [embed.dispatch(block, self._space.records, self._space.hidden, columns) for block in blocks]

    def trunk(self, kind: ColumnClass, columns: int, splits: int) -> list[Dispatch]:
        """The part's layers over the residual stream; ``splits`` is used by step columns only."""
        block = self._step_layer if kind is ColumnClass.STEP else self._prompt_layer
        return [d for i in range(len(self._weights.layers)) for d in block(i, columns, splits)]

    def head(self, columns: int, *, collect: bool, advance: bool = False) -> list[Dispatch]:
        """Output norm, logits and the best id of each column; with ``collect`` also its 64 best."""
        weights, space = self._weights, self._space
        assert weights.head
        assert weights.output_norm
        assert space.logits
        assert space.selection
        logits, x, norm = self._normed(weights.output_norm, columns)
        logits += self._matvec(weights.head, x, space.logits, columns, norm=norm)
        best = select.best_dispatches(
            space.logits, space.records, space.selection, self._config.vocab, columns, advance=advance
        )
        extra = select.collect_dispatches(space.logits, space.selection, self._config.vocab, columns)
        return logits + best + (extra if collect else [])

    def _step_layer(self, index: int, columns: int, splits: int) -> list[Dispatch]:
        layer, space = self._weights.layers[index], self._space
        return [
            *self._qkv_step(layer, columns),
            self._rope(index, columns),
            *attention.split_dispatches(
                space.records, space.qkv, space.caches[index], space.partial, space.state,
                space.attended, self._config.heads, columns, splits, self._threads,
            ),
            *self._matvec(layer.output, space.attended, space.hidden, columns, epilogue=Epilogue.ADD),
            *self._gate_up_step(layer, columns),
            *self._matvec(layer.down, space.inner, space.hidden, columns, epilogue=Epilogue.ADD),
        ]  # fmt: skip

    def _qkv_step(self, layer: Layer, columns: int) -> list[Dispatch]:
        before, x, norm = self._normed(layer.attention_norm, columns)
        for matrix, y in _stacked(layer.qkv, self._space.qkv):
            before += self._matvec(matrix, x, y, columns, norm=norm, bias=layer.qkv_bias)
        return before

    def _gate_up_step(self, layer: Layer, columns: int) -> list[Dispatch]:
        space, inner = self._space, self._config.inner
        before, x, norm = self._normed(layer.ffn_norm, columns)
        if len(layer.gate_up) == 1 and len(layer.gate_up[0].blocks) == 1:
            joined = self._matvec(layer.gate_up[0], x, space.inner, columns, norm=norm, epilogue=Epilogue.SWIGLU)
            return before + joined
        for matrix, y in _stacked(layer.gate_up, space.gate_up):
            before += self._matvec(matrix, x, y, columns, norm=norm)
        return [*before, swiglu.dispatch(space.gate_up, space.inner, inner, columns)]

    def _normed(self, weights: Slice, columns: int) -> tuple[list[Dispatch], Activations, Norm | None]:
        """The normalised residual stream: left to the next matvec, or by a launch before it."""
        norm = self._norm(weights)
        if self._tuning.fused_norm:
            return [], self._space.hidden, norm
        apart = rmsnorm.dispatch(self._space.hidden, self._space.normed, norm, columns)
        return [apart], self._space.normed, None

    def _prompt_layer(self, index: int, columns: int, _splits: int) -> list[Dispatch]:
        layer, space, config = self._weights.layers[index], self._space, self._config
        return [
            rmsnorm.dispatch(space.hidden, space.normed, self._norm(layer.attention_norm), columns),
            *self._matmuls(layer.qkv, space.normed, space.qkv, columns, bias=layer.qkv_bias),
            self._rope(index, columns),
            attention.whole_dispatch(
                space.records, space.qkv, space.caches[index], space.attended, config.heads, columns, self._threads
            ),
            *self._matmuls((layer.output,), space.attended, space.hidden, columns, epilogue=Epilogue.ADD),
            rmsnorm.dispatch(space.hidden, space.normed, self._norm(layer.ffn_norm), columns),
            *self._matmuls(layer.gate_up, space.normed, space.gate_up, columns),
            swiglu.dispatch(space.gate_up, space.inner, config.inner, columns),
            *self._matmuls((layer.down,), space.inner, space.hidden, columns, epilogue=Epilogue.ADD),
        ]

    def _rope(self, index: int, columns: int) -> Dispatch:
        space, layer = self._space, self._weights.layers[index]
        return rope.dispatch(
            space.records, space.qkv, space.caches[index], self._weights.rope, self._config.heads,
            columns, layer.head_norms,
        )  # fmt: skip

    def _matvec(
        self, matrix: Matrix, x: Activations, y: Activations, columns: int, *,
        epilogue: Epilogue = Epilogue.STORE, norm: Norm | None = None, bias: Slice | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        return [
            matvec.dispatch(block, x, y, columns, self._tuning, epilogue=epilogue, norm=norm, bias=bias)
            for block in matrix.blocks
        ]

    def _matmuls(
        self, matrices: tuple[Matrix, ...], x: Activations, y: Activations, columns: int, *,
        epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        placement = matmul.placement_for(columns, self._caps.shared, software=self._caps.software)
        return [
            matmul.dispatch(block, x, target, columns, placement, epilogue=epilogue, bias=bias)
            for matrix, target in _stacked(matrices, y)
            for block in matrix.blocks
        ]

    def _norm(self, weights: Slice) -> Norm:
        return Norm(weights, self._config.hidden, self._config.epsilon)


def _stacked(matrices: tuple[Matrix, ...], y: Activations) -> list[tuple[Matrix, Activations]]:
    """Each matrix with the part of ``y`` its rows go to, one after another."""
    firsts = accumulate((m.rows for m in matrices), initial=0)
    return [(m, Activations(y.slice, y.stride, first)) for m, first in zip(matrices, firsts, strict=False)]
