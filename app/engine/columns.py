"""How a class of columns computes: step columns with matvecs, prompt columns with GEMMs (ADR 1, ADR 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.ops import attention, fast_matmul, fast_matvec, matmul, matvec, quantise, rmsnorm, swiglu
from app.engine.ops.matvec import Activations, Norm, Tuning
from app.engine.ops.quantise import Quantised
from app.engine.ops.rope import Cache, HeadShape
from app.engine.placement import Epilogue
from app.engine.program import Dispatch
from app.engine.types import Arithmetic, ColumnClass
from app.engine.weights.layout import UNIT, stride
from app.engine.weights.matrix import Block, Matrix
from app.engine.workspace import Workspace

FEW_ROWS = 1024


@dataclass(frozen=True)
class Input:
    """What products read: float columns, not yet normalised where there is a ``norm``, and the same as int8."""

    floats: Activations
    norm: Norm | None = None
    quantised: Quantised | None = None


class Columns(Protocol):
    """``count`` columns of one class."""

    @property
    def kind(self) -> ColumnClass: ...

    @property
    def count(self) -> int: ...

    @property
    def space(self) -> Workspace: ...

    @property
    def arithmetic(self) -> Arithmetic: ...

    @property
    def caps(self) -> Caps: ...

    def prepare(self, x: Activations, norm: Norm | None, readers: Sequence[Matrix]) -> tuple[list[Dispatch], Input]:
        """``x`` as its ``readers`` need it, and the launches that make it so."""
        ...

    def product(
        self, matrices: Sequence[Matrix], x: Input, y: Activations, *,
        epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None, weights: Activations | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        """``x`` times matrices whose rows lie one after another in ``y``."""
        ...

    def gated(self, gate_up: Sequence[Matrix], x: Input, size: int, reader: Matrix) -> tuple[list[Dispatch], Input]:
        """silu(gate) * up, of ``size`` values, to what ``reader`` takes."""
        ...

    def attention(self, cache: Cache, shape: HeadShape, reader: Matrix) -> tuple[list[Dispatch], Input]:
        """From the workspace's ``qkv`` and a cache to what ``reader`` takes."""
        ...


@dataclass(frozen=True)
class StepColumns:
    """Up to 16 columns; ``splits`` is the most any of their positions has."""

    space: Workspace
    tuning: Tuning
    arithmetic: Arithmetic
    caps: Caps
    count: int
    splits: int
    kind: ColumnClass = ColumnClass.STEP

    def prepare(self, x: Activations, norm: Norm | None, readers: Sequence[Matrix]) -> tuple[list[Dispatch], Input]:
        return _prepared(self, x, norm, readers, norm_apart=not self.tuning.fused_norm)

    def product(
        self, matrices: Sequence[Matrix], x: Input, y: Activations, *,
        epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None, weights: Activations | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        return [self._times(block, x, target, epilogue, bias, weights) for block, target in _blocks(matrices, y)]

    def _times(
        self, block: Block, x: Input, y: Activations, epilogue: Epilogue, bias: Slice | None,
        weights: Activations | None,
    ) -> Dispatch:  # fmt: skip
        if x.quantised and fast_matvec.takes(block):
            return fast_matvec.dispatch(
                block, x.quantised, y, self.count, self.caps, epilogue=epilogue, bias=bias, weights=weights
            )
        few = block.rows <= FEW_ROWS and epilogue is not Epilogue.SWIGLU and not self.caps.software
        tuning = replace(self.tuning, rows=1) if few else self.tuning
        return matvec.dispatch(
            block, x.floats, y, self.count, tuning, epilogue=epilogue, norm=x.norm, bias=bias, weights=weights
        )

    def gated(self, gate_up: Sequence[Matrix], x: Input, size: int, reader: Matrix) -> tuple[list[Dispatch], Input]:
        inner, whole = sized(self.space.inner, size), reads_whole(self, reader)
        single = gate_up[0].blocks[0] if len(gate_up) == 1 and len(gate_up[0].blocks) == 1 else None
        if single and whole and x.quantised and fast_matvec.rounds(single, self.count, self.caps):
            rounded = self.space.rounded.sized(size)
            launch = fast_matvec.rounded_dispatch(single, x.quantised, rounded, self.count, self.caps)
            return [launch], Input(inner, None, rounded)
        if single:
            launches = self.product(gate_up, x, inner, epilogue=Epilogue.SWIGLU)
        else:
            both = sized(self.space.gate_up, 2 * size)
            launches = [*self.product(gate_up, x, both), swiglu.dispatch(both, inner, size, self.count)]
        before, ready = self.prepare(inner, None, (reader,))
        return [*launches, *before], ready

    def attention(self, cache: Cache, shape: HeadShape, reader: Matrix) -> tuple[list[Dispatch], Input]:
        space, whole = self.space, reads_whole(self, reader)
        out = sized(space.attended, shape.heads * shape.size)
        fused = whole and quantise.fuses(self.caps) and shape.size % UNIT == 0
        rounded = space.quantised.sized(reader.columns) if fused else None
        launches = attention.split_dispatches(
            space.records, space.qkv, cache, space.partial, space.state, out, shape, self.count, self.splits,
            _threads(self.caps), rounded,
        )  # fmt: skip
        if rounded:
            return launches, Input(out, None, rounded)
        before, ready = self.prepare(out, None, (reader,))
        return [*launches, *before], ready


@dataclass(frozen=True)
class PromptColumns:
    """A chunk of a prompt."""

    space: Workspace
    tuning: Tuning
    arithmetic: Arithmetic
    caps: Caps
    count: int
    kind: ColumnClass = ColumnClass.PROMPT

    def prepare(self, x: Activations, norm: Norm | None, readers: Sequence[Matrix]) -> tuple[list[Dispatch], Input]:
        return _prepared(self, x, norm, readers, norm_apart=True)

    def product(
        self, matrices: Sequence[Matrix], x: Input, y: Activations, *,
        epilogue: Epilogue = Epilogue.STORE, bias: Slice | None = None, weights: Activations | None = None,
    ) -> list[Dispatch]:  # fmt: skip
        assert weights is None
        return [self._times(block, x, target, epilogue, bias) for block, target in _blocks(matrices, y)]

    def _times(self, block: Block, x: Input, y: Activations, epilogue: Epilogue, bias: Slice | None) -> Dispatch:
        if x.quantised and fast_matvec.takes(block):
            return fast_matmul.dispatch(block, x.quantised, y, self.count, self.caps, epilogue=epilogue, bias=bias)
        if block.rows <= FEW_ROWS and not self.caps.software:
            # A router's few rows fill no GPU in tiles; a matvec's bits do not depend on the columns beside it either.
            return matvec.dispatch(block, x.floats, y, self.count, self.tuning, epilogue=epilogue, bias=bias)
        placement = matmul.placement_for(block.rows, self.count, self.caps.shared, software=self.caps.software)
        return matmul.dispatch(block, x.floats, y, self.count, placement, epilogue=epilogue, bias=bias)

    def gated(self, gate_up: Sequence[Matrix], x: Input, size: int, reader: Matrix) -> tuple[list[Dispatch], Input]:
        both, inner = sized(self.space.gate_up, 2 * size), sized(self.space.inner, size)
        launches = [*self.product(gate_up, x, both), swiglu.dispatch(both, inner, size, self.count)]
        before, ready = self.prepare(inner, None, (reader,))
        return [*launches, *before], ready

    def attention(self, cache: Cache, shape: HeadShape, reader: Matrix) -> tuple[list[Dispatch], Input]:
        space = self.space
        out = sized(space.attended, shape.heads * shape.size)
        whole = attention.whole_dispatch(
            space.records, space.qkv, cache, out, shape, self.count, _threads(self.caps), self.caps.shared
        )
        before, ready = self.prepare(out, None, (reader,))
        return [whole, *before], ready


def _prepared(
    ops: Columns, x: Activations, norm: Norm | None, readers: Sequence[Matrix], *, norm_apart: bool
) -> tuple[list[Dispatch], Input]:
    """``norm_apart``: those that read floats do not normalise them on the way."""
    whole = next((m for m in readers if reads_whole(ops, m)), None)
    launches: list[Dispatch] = []
    if norm and norm_apart and not all(reads_whole(ops, m) for m in readers):
        launches.append(rmsnorm.dispatch(x, ops.space.normed, norm, ops.count))
        x, norm = ops.space.normed, None
    if whole is None:
        return launches, Input(x, norm)
    quantised = ops.space.quantised.sized(whole.columns)
    return [*launches, quantise.dispatch(x, quantised, ops.count, ops.caps, norm)], Input(x, norm, quantised)


def _blocks(matrices: Sequence[Matrix], y: Activations) -> list[tuple[Block, Activations]]:
    """Each matrix's blocks with the part of ``y`` its rows go to, one matrix after another."""
    firsts = accumulate((m.rows for m in matrices), initial=y.first)
    targets = [Activations(y.slice, y.stride, first) for first in firsts]
    return [(block, target) for m, target in zip(matrices, targets, strict=False) for block in m.blocks]


def sized(buffer: Activations, size: int) -> Activations:
    """A buffer used for columns of ``size`` values, fewer than it has room for."""
    return Activations(buffer.slice, stride(size))


def reads_whole(ops: Columns, matrix: Matrix) -> bool:
    """Whether products with this matrix take int8 columns."""
    return ops.arithmetic is Arithmetic.FAST and fast_matvec.takes(matrix.blocks[0])


def _threads(caps: Caps) -> int:
    return attention.SOFTWARE_THREADS if caps.software else attention.THREADS
