"""Gated DeltaNet: short convolution, gated delta rule and gated norm of each value head (spec: engine §4.2).

The projections of a column lie side by side: [q | k | v | z | beta | alpha], the first three going
through the convolution. A sequence's lasting state is its matrix S at some position, the *committed*
one, and a ring of the raw projections after it. Step columns change only the ring; the next pass
first replays as many of them as were accepted. So a draft is taken back by not replaying it, and a
state is the same whether the columns before it came one at a time, together, or after wrong drafts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError
from app.engine.device import Caps
from app.engine.memory import Slice
from app.engine.ops import quantise
from app.engine.ops.matvec import Activations
from app.engine.ops.quantise import Quantised
from app.engine.ops.render import COLUMN_STRUCT, template, unrolled
from app.engine.program import Dispatch, Kernel
from app.engine.types import STEP_COLUMNS, ColumnClass
from app.engine.weights.layout import UNIT

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

_BLOCK_BYTES = 15 << 10
"""Of workgroup memory that hold the columns convolved at once; more only where the GPU has it."""
_MOST_BLOCK = 16
_LANES = 8
_MAX_SIZE = 128


@dataclass(frozen=True)
class DeltaShape:
    """``value_heads`` of ``size`` values read keys of ``key_heads``, head h those of h modulo the count.

    ``taps`` inputs of each channel are convolved.
    """

    key_heads: int
    value_heads: int
    size: int
    taps: int
    epsilon: float

    @property
    def channels(self) -> int:
        """Width of q, k and v together."""
        return (2 * self.key_heads + self.value_heads) * self.size

    @property
    def inner(self) -> int:
        return self.value_heads * self.size

    @property
    def rows(self) -> int:
        """Width of a column's projections."""
        return self.channels + self.inner + 2 * self.value_heads

    @property
    def ring(self) -> int:
        """Positions whose projections are kept: a step's columns, those before it to replay, and their past."""
        return 2 * STEP_COLUMNS + self.taps - 1


def joined_weights(taps: Floats, a: Floats, dt: Floats, norm: Floats) -> Floats:
    """``taps`` [channels, taps], A and dt of each value head and the norm's weights, as the kernel reads them.

    The norm, A, dt and what is missing to a vector; then the taps, oldest first: [taps, channels].
    """
    parameters = np.concatenate([norm, a, dt])
    return np.concatenate([parameters, np.zeros(-parameters.size % 4, np.float32), taps.T.reshape(-1)])


@dataclass(frozen=True)
class DeltaState:
    """Of one layer, a sequence after another: S [value heads, size / 4, size, 4], rings of q, k, v and of the gates."""

    matrix: Slice
    ring: Slice
    gates: Slice


def check_shape(shape: DeltaShape) -> None:
    """ModelError for sizes the kernel does not lay out."""
    if shape.size % 8 or not 8 <= shape.size <= _MAX_SIZE or not 2 <= shape.taps <= 8:
        raise ModelError(f"DeltaNet heads of size {shape.size} are not supported.", "Pick another model.")
    if shape.value_heads % shape.key_heads:
        raise ModelError(
            f"The model claims {shape.key_heads} key heads for {shape.value_heads} value heads.", "Get another file."
        )


def state_bytes(shape: DeltaShape, sequences: int) -> tuple[int, int, int]:
    """Bytes of the three buffers of a layer's state."""
    return (
        sequences * shape.inner * shape.size * 4,
        sequences * shape.ring * shape.channels * 4,
        sequences * shape.ring * 2 * shape.value_heads * 4,
    )


def dispatches(
    records: Slice, mixed: Activations, state: DeltaState, weights: Slice, out: Activations | Quantised,
    shape: DeltaShape, columns: int, kind: ColumnClass, shared: int,
) -> list[Dispatch]:  # fmt: skip
    """``out`` [columns, inner] of the projections ``mixed``, rounded on the way where it is ``Quantised``.

    PROMPT columns are committed at once. ``weights`` are ``joined_weights``. ``shared`` bytes of workgroup
    memory are there; how many columns are convolved at once moves no bit.
    """
    commit = kind is ColumnClass.PROMPT
    if isinstance(out, Quantised):
        outs, stride = (out.values, out.scales), out.units * UNIT
    else:
        outs, stride = (out.slice,), out.stride
    mixer = Kernel(
        _source(shape, commit, _block(shape, shared) if commit else _block(shape, 0), rounded=len(outs) > 1),
        ("read", "read", "write", "write", "write", "read", *("write" for _ in outs)),
        (*_constants(shape, mixed), ("OUT_STRIDE", stride // 4), ("EPS", shape.epsilon)),
        "delta",
    )
    slices = (records, mixed.slice, state.ring, state.gates, state.matrix, weights, *outs)
    runs = 1 if commit else columns
    found = [Dispatch(mixer, slices, (shape.value_heads, runs, 1))]
    return [*found, _keep(records, mixed, state, shape)] if commit else found


def rounds(shape: DeltaShape, caps: Caps) -> bool:
    """Whether the kernel can round its own result."""
    return quantise.fuses(caps) and shape.size % UNIT == 0


def _keep(records: Slice, mixed: Activations, state: DeltaState, shape: DeltaShape) -> Dispatch:
    """The last projections of a prompt chunk into the ring, after every workgroup has read the old ones."""
    source = template("delta/keep.wgsl").substitute(column=COLUMN_STRUCT)
    constants = (*_constants(shape, mixed), ("GROUPS", shape.size // 4))
    kernel = Kernel(source, ("read", "read", "write"), constants, "keep")
    groups = -(-shape.channels // 4 // 64)
    return Dispatch(kernel, (records, mixed.slice, state.ring), (groups, shape.taps - 1, 1))


def _constants(shape: DeltaShape, mixed: Activations) -> tuple[tuple[str, int | float], ...]:
    return (
        ("KEY_HEADS", shape.key_heads), ("VALUE_HEADS", shape.value_heads), ("RING", shape.ring),
        ("STRIDE", mixed.stride // 4),
    )  # fmt: skip


def reference(mixed: Array, taps: Array, a: Array, dt: Array, norm: Array, shape: DeltaShape) -> tuple[Array, Array]:
    """``mixed`` [n, rows] from position 0 in float64 -> outputs [n, inner] and the last S [heads, size, size]."""
    n, heads, size = len(mixed), shape.value_heads, shape.size
    raw, z, beta, alpha = np.split(mixed, np.cumsum([shape.channels, shape.inner, heads]), axis=1)
    past = np.concatenate([np.zeros((shape.taps - 1, shape.channels)), raw])
    y = sum(past[t : t + n] * taps[:, t] for t in range(shape.taps))
    y = y / (1 + np.exp(-y))
    q, k = (_unit(part, shape) for part in np.split(y[:, : 2 * shape.key_heads * size], 2, axis=1))
    v = y[:, 2 * shape.key_heads * size :].reshape(n, heads, size)
    decay = np.exp(a * np.logaddexp(0, alpha + dt))
    share = 1 / (1 + np.exp(-beta))
    state, out = np.zeros((heads, size, size)), np.zeros((n, heads, size))
    for t in range(n):
        state *= decay[t][:, None, None]
        read = np.einsum("hij,hi->hj", state, k[t])
        state += k[t][:, :, None] * (share[t][:, None] * (v[t] - read))[:, None, :]
        out[t] = np.einsum("hij,hi->hj", state, q[t]) / np.sqrt(size)
    out /= np.sqrt(np.mean(out * out, axis=2, keepdims=True) + shape.epsilon)
    gate = z.reshape(n, heads, size)
    return (out * norm * gate / (1 + np.exp(-gate))).reshape(n, -1), state


def _unit(part: Array, shape: DeltaShape) -> Array:
    """Keys or queries at unit length, repeated for the value heads that read them."""
    heads = part.reshape(len(part), shape.key_heads, shape.size)
    heads = heads / np.maximum(np.linalg.norm(heads, axis=2, keepdims=True), shape.epsilon)
    return np.tile(heads, (1, shape.value_heads // shape.key_heads, 1))


def _block(shape: DeltaShape, shared: int) -> int:
    """Columns of a block: four floats of q, k, v and one of the output a value, in what is left beside the joins."""
    room = max(shared - (4 * shape.size * 8 + (2 << 10)), _BLOCK_BYTES - 4 * shape.size * 8)
    return max(1, min(room // (4 * shape.size * 4 + 128), _MOST_BLOCK))


def _source(shape: DeltaShape, commit: bool, block: int, *, rounded: bool) -> str:
    regs = shape.size // 8
    return template("delta/kernel.wgsl").substitute(
        column=COLUMN_STRUCT,
        size=shape.size,
        block=block,
        lanes=_LANES,
        commit="true" if commit else "false",
        load=unrolled(regs, _load),
        store=unrolled(regs, _store),
        sweep=unrolled(regs, _sweep),
        update=unrolled(regs, lambda m: f"            s_{m} = fma(tile[key_at + {m}u], vec4<f32>(change), s_{m});"),
        convolve=_convolve(shape.taps),
        sums=unrolled(_LANES, _sum),
        outs=_OUT_INT8 if rounded else _OUT,
        shuffles=quantise.SHUFFLES if rounded else "",
        write=quantise.store_quad("result", "to", "inside") if rounded else "        if (inside) { out[to] = result; }",
    )


_OUT = "@group(0) @binding(6) var<storage, read_write> out: array<vec4<f32>>;"
_OUT_INT8 = """@group(0) @binding(6) var<storage, read_write> values: array<u32>;
@group(0) @binding(7) var<storage, read_write> unit_scales: array<vec4<f32>>;"""


def _load(m: int) -> str:
    return f"    var s_{m} = select(vec4<f32>(0.0), matrix[matrix_at + {m}u * SIZE], begun);"


def _store(m: int) -> str:
    return f"                matrix[matrix_at + {m}u * SIZE] = s_{m};"


def _sweep(m: int) -> str:
    return f"""            s_{m} *= decay;
            read = fma(s_{m}, tile[key_at + {m}u], read);
            seen = fma(s_{m}, tile[query_at + {m}u], seen);"""


def _convolve(taps: int) -> str:
    """The newest input first, then the oldest to the one before it."""
    lines = [f"            var y = weight({taps - 1}u, channel) * own;"]
    for tap in range(taps - 1):
        lines.append(
            f"            y = fma(weight({tap}u, channel), raw(run, first, at - {taps - 1 - tap}, channel), y);"
        )
    return "\n".join(lines)


def _sum(lane: int) -> str:
    return f"""            queries += dots[dots_at + {lane}u];
            keys += dots[dots_at + LANES + {lane}u];
            both += dots[dots_at + 2u * LANES + {lane}u];"""
