"""A layer's mixture of experts: router, routes, the chosen experts, and the one that every column shares."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.columns import Columns, Input, PromptColumns, StepColumns, reads_whole
from app.engine.model import ExpertFfn
from app.engine.ops import experts, fast_matvec, quantise, swiglu
from app.engine.ops.experts import ExpertBuffers, ExpertShape
from app.engine.ops.matvec import Activations, Norm
from app.engine.ops.quantise import Quantised
from app.engine.placement import Epilogue
from app.engine.program import Dispatch
from app.engine.weights.matrix import Matrix
from app.engine.workspace import Workspace


@dataclass(frozen=True)
class Mixture:
    """Writes the launches of one layer: ``ffn`` over the residual stream ``h``."""

    routing: ExpertShape
    ffn: ExpertFfn
    space: Workspace

    @property
    def shape(self) -> ExpertShape:
        """The mixture as its stacks see it."""
        return experts.with_shared(self.routing) if self.ffn.joined else self.routing

    def dispatches(self, ops: Columns, norm: Norm) -> list[Dispatch]:
        """The residual stream, normalised, through the mixture and added to itself."""
        buffers, shared = self.buffers, self.ffn.shared
        readers = [*self.ffn.router, *self.ffn.gate_up, *(shared.gate_up if shared else ())]
        before, x = ops.prepare(self.space.hidden, norm, readers)
        logits = ops.product(self.ffn.router, x, buffers.logits)
        route = experts.route_dispatch(buffers.logits, buffers.routes, self.routing, ops.count)
        routed = self._step(ops, x) if isinstance(ops, StepColumns) else self._prompt(ops, x)
        return [*before, *logits, route, *routed]

    @property
    def buffers(self) -> ExpertBuffers:
        assert self.space.experts
        return self.space.experts

    def _step(self, ops: StepColumns, x: Input) -> list[Dispatch]:
        h, shared = self.space.hidden, self.ffn.shared
        # The shared expert's own rounding replaces the input's: the routed ones have read it by then.
        routed = self._gated_step(ops, x)
        if not shared:
            return [*routed, *self._down_step(ops, h)]
        gated, inner = ops.gated(shared.gate_up, x, self.shape.shared_inner, shared.down)
        weights = experts.shared_weights(self.buffers.routes, self.shape)
        out = ops.product((shared.down,), inner, h, epilogue=Epilogue.WEIGHTED_ADD, weights=weights)
        return [*routed, *gated, *self._down_step(ops, h), *out]

    def _down_step(self, ops: StepColumns, h: Activations) -> list[Dispatch]:
        shape, buffers, blocks = self.shape, self.buffers, self.ffn.down.blocks
        if len(blocks) == 1 and reads_whole(ops, self.ffn.down):
            inner = buffers.quantised
            rounded = quantise.dispatch(buffers.inner, inner, ops.count * shape.used, ops.caps)
            return [
                rounded, experts.fast_step_down(blocks[0], inner, h, buffers.routes, shape, ops.count, ops.caps)
            ]  # fmt: skip
        return experts.step_down(
            blocks, buffers.inner, h, buffers.routes, shape, ops.count, ops.tuning, buffers.outputs,
            apart=ops.caps.software,
        )  # fmt: skip

    def _gated_step(self, ops: StepColumns, x: Input) -> list[Dispatch]:
        shape, buffers, stacks = self.shape, self.buffers, self.ffn.gate_up
        joined = len(stacks) == 1
        rows, epilogue = (2 * shape.inner, Epilogue.SWIGLU) if joined else (shape.inner, Epilogue.STORE)
        launches: list[Dispatch] = []
        for stack, y in zip(stacks, self._gate_up_places(buffers.inner), strict=False):
            for block in stack.blocks:
                if x.quantised and fast_matvec.takes(block):
                    launch = experts.fast_step_matvec(
                        block, rows, x.quantised, y, buffers.routes, shape, ops.count, ops.caps, epilogue=epilogue
                    )
                else:
                    launch = experts.step_matvec(
                        block, rows, x.floats, y, buffers.routes, shape, ops.count, ops.tuning, epilogue=epilogue,
                        norm=x.norm,
                    )  # fmt: skip
                launches.append(launch)
        return launches if joined else [*launches, self._swiglu(ops)]

    def _prompt(self, ops: Columns, x: Input) -> list[Dispatch]:
        assert isinstance(ops, PromptColumns)
        buffers, hidden = self.buffers, self.ffn.down.rows // self.shape.count
        grouped = _FastGroups(self, ops, x) if self._grouped_fast(ops) else _ExactGroups(self, ops, x)
        shared, shared_output = self._shared_prompt(ops, x)
        combine = experts.combine_dispatch(
            buffers.outputs, self.space.hidden, buffers.routes, self.shape, hidden, ops.count, shared_output
        )
        sort = experts.sort_dispatch(buffers.routes, buffers.groups, self.shape, ops.count, grouped.tile)
        return [sort, *grouped.gate_up(), *shared, self._swiglu(ops), *grouped.down(), combine]

    def _grouped_fast(self, ops: Columns) -> bool:
        """One kind of tile serves all of a layer's stacks."""
        return all(reads_whole(ops, stack) for stack in (*self.ffn.gate_up, self.ffn.down))

    def gate_up_places(self) -> list[tuple[Matrix, Activations]]:
        """The prompt's gate and up stacks, and where their rows go."""
        return list(zip(self.ffn.gate_up, self._gate_up_places(self.buffers.gate_up), strict=False))

    def _shared_prompt(self, ops: Columns, x: Input) -> tuple[list[Dispatch], Activations | None]:
        """Into ``normed``, which everything else has read by then."""
        if not self.ffn.shared:
            return [], None
        gated, inner = ops.gated(self.ffn.shared.gate_up, x, self.shape.shared_inner, self.ffn.shared.down)
        return [*gated, *ops.product((self.ffn.shared.down,), inner, self.space.normed)], self.space.normed

    def _gate_up_places(self, joined: Activations) -> list[Activations]:
        """Where gate rows and up rows go: to one place where a stack holds both, else side by side."""
        if len(self.ffn.gate_up) == 1:
            return [joined]
        both = self.buffers.gate_up
        return [both, Activations(both.slice, both.stride, both.first + self.shape.inner)]

    def _swiglu(self, ops: Columns) -> Dispatch:
        buffers = self.buffers
        return swiglu.dispatch(buffers.gate_up, buffers.inner, self.shape.inner, ops.count * self.shape.used)


class _ExactGroups:
    """Grouped products with float inputs."""

    def __init__(self, mixture: Mixture, ops: PromptColumns, x: Input) -> None:
        self._mixture, self._ops, self._x = mixture, ops, x
        self._placement = experts.placement_for(mixture.shape, ops.count, ops.caps.shared, software=ops.caps.software)
        self.tile = self._placement.columns

    def gate_up(self) -> list[Dispatch]:
        return [d for stack, y in self._mixture.gate_up_places() for d in self._times(stack, self._x.floats, y)]

    def down(self) -> list[Dispatch]:
        buffers = self._mixture.buffers
        return self._times(self._mixture.ffn.down, buffers.inner, buffers.outputs, per_slot=True)

    def _times(self, stack: Matrix, x: Activations, y: Activations, *, per_slot: bool = False) -> list[Dispatch]:
        groups, shape = self._mixture.buffers.groups, self._mixture.shape
        return [
            experts.grouped_matmul(
                block, stack.rows // shape.count, x, y, groups, shape, self._ops.count, self._placement,
                per_slot=per_slot,
            )
            for block in stack.blocks
        ]  # fmt: skip


class _FastGroups:
    """Grouped products with int8 inputs."""

    def __init__(self, mixture: Mixture, ops: PromptColumns, x: Input) -> None:
        assert x.quantised
        self._mixture, self._ops, self._x = mixture, ops, x.quantised
        self.tile = experts.fast_tile(mixture.shape, ops.count, ops.caps)

    def gate_up(self) -> list[Dispatch]:
        return [d for stack, y in self._mixture.gate_up_places() for d in self._times(stack, self._x, y)]

    def down(self) -> list[Dispatch]:
        buffers, pairs = self._mixture.buffers, self._ops.count * self._mixture.shape.used
        rounded = quantise.dispatch(buffers.inner, buffers.quantised, pairs, self._ops.caps)
        return [rounded, *self._times(self._mixture.ffn.down, buffers.quantised, buffers.outputs, per_slot=True)]

    def _times(self, stack: Matrix, x: Quantised, y: Activations, *, per_slot: bool = False) -> list[Dispatch]:
        groups, shape = self._mixture.buffers.groups, self._mixture.shape
        return [
            experts.fast_grouped_matmul(
                block, stack.rows // shape.count, x, y, groups, shape, self._ops.count, self._ops.caps,
                per_slot=per_slot,
            )
            for block in stack.blocks
        ]  # fmt: skip
