"""Every kernel the engine would generate for made-up models, without a GPU and without weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from app.engine.arch import FAMILIES, Mixer, ModelConfig
from app.engine.builder import Builder
from app.engine.device import Caps
from app.engine.gguf import TensorType
from app.engine.memory import Meter, Slice
from app.engine.model import AttentionMixer, DeltaMixer, DenseFfn, Draft, ExpertFfn, Layer, Weights
from app.engine.ops import attention, experts, matmul
from app.engine.ops.delta import DeltaShape
from app.engine.ops.experts import ExpertShape, Groups
from app.engine.ops.matmul import Placement
from app.engine.ops.matvec import Activations
from app.engine.ops.render import has_extra
from app.engine.ops.rope import Cache, HeadShape
from app.engine.options import GPU_TUNING, SOFTWARE_TUNING
from app.engine.program import Dispatch, Kernel
from app.engine.programs import PROMPT_WIDTHS, STEP_WIDTHS
from app.engine.types import Arithmetic, ColumnClass, KvFormat, Part
from app.engine.weights.matrix import Block, Matrix
from app.engine.workspace import make_workspace

NOTHING = Slice(None, 0, 256, None)
PORTABLE = Caps(128 << 20, 256 << 20, 16 << 10, software=False, features=frozenset(), subgroup=0)
CAPS = [
    PORTABLE,
    replace(PORTABLE, shared=48 << 10),
    *(replace(PORTABLE, shared=shared, subgroup=32) for shared in (16 << 10, 48 << 10)),
    replace(PORTABLE, shared=48 << 10, subgroup=8),
    replace(PORTABLE, software=True),
    replace(PORTABLE, shared=32 << 10, subgroup=8, software=True),
]


def _config(
    architecture: str, hidden: int, inner: int, heads: tuple[int, int, int], *, vocab: int = 151_936,
    mixers: tuple[Mixer, ...] = (Mixer.ATTENTION,), delta: DeltaShape | None = None,
    mixture: ExpertShape | None = None, rotary: int | None = None, drafts: bool = False,
) -> ModelConfig:  # fmt: skip
    family, (count, kv_count, size) = FAMILIES[architecture], heads
    shape = HeadShape(count, kv_count, size, rotary or size, family.interleaved_rope, 1e-6, gated=family.hybrid)
    return ModelConfig(
        architecture, family, mixers, hidden, inner, vocab, 4096, shape, delta, mixture, 1e6, 1e-6, True, drafts
    )


_BOTH, _DELTA = (Mixer.DELTA, Mixer.ATTENTION), DeltaShape(16, 32, 128, 4, 1e-6)
MODELS = {
    "llama": _config("llama", 576, 1536, (9, 3, 64), vocab=49_152),
    "qwen2": _config("qwen2", 896, 4864, (14, 2, 64)),
    "qwen3": _config("qwen3", 2560, 9728, (32, 8, 128)),
    "qwen3moe": _config("qwen3moe", 2048, 0, (32, 4, 128), mixture=ExpertShape(128, 8, 768, 0, True)),
    "qwen35": _config(
        "qwen35", 2560, 9216, (16, 4, 256), rotary=64, mixers=_BOTH, delta=_DELTA, drafts=True, vocab=248_320,
    ),
    "qwen35moe": _config(
        "qwen35moe", 2048, 0, (16, 2, 256), rotary=64, mixers=_BOTH, delta=_DELTA, drafts=True,
        mixture=ExpertShape(256, 8, 512, 512, False), vocab=248_320,
    ),
}  # fmt: skip


def kernels(
    config: ModelConfig, kind: TensorType, caps: Caps, arithmetic: Arithmetic, kv: KvFormat = KvFormat.F16, *,
    joined: bool = True, widths: tuple[int, ...] = (*STEP_WIDTHS, *PROMPT_WIDTHS),
) -> Iterator[Kernel]:  # fmt: skip
    """Of a whole model with all matrices of one type; where they are not ``joined``, as a file of several has them."""
    part = Part(0, config.layers, embed=True, head=True, draft=config.drafts)
    space = make_workspace(Meter(), config, part, PROMPT_WIDTHS[-1], config.context, kv)
    tuning = SOFTWARE_TUNING if caps.software else GPU_TUNING
    builder = Builder(config, _weights(config, kind, joined=joined), space, tuning, caps, arithmetic)
    layers = range(config.layers)
    for width in set(STEP_WIDTHS) & set(widths):
        yield from _kernels(builder.embed(width), builder.trunk(ColumnClass.STEP, width, 4, layers))
        yield from _kernels(builder.head(width, collect=True), builder.head(width, collect=True, masked=True))
        yield from _kernels(builder.head(width, collect=False, advance=True))
    for width in set(PROMPT_WIDTHS) & set(widths):
        yield from _kernels(builder.trunk(ColumnClass.PROMPT, width, 1, layers))
    if config.drafts:
        classes = product((ColumnClass.STEP, ColumnClass.PROMPT), (True, False))
        yield from _kernels(*(builder.draft(c, 16, 4, first=first) for c, first in classes))
        yield from _kernels(builder.draft_head(1, advance=True), builder.settle())


def of_all_models() -> Iterator[tuple[Kernel, Caps]]:
    """Every family, in both arithmetics, on every kind of device, with every cache."""
    for config, caps in product(MODELS.values(), CAPS):
        for arithmetic, joined in product(Arithmetic, (True, False)):
            yield from _for(caps, kernels(config, TensorType.Q4_0, caps, arithmetic, joined=joined))
        for kv in KvFormat:
            yield from _for(caps, kernels(config, TensorType.Q4_0, caps, Arithmetic.EXACT, kv, widths=(4, 64)))
    for kv, caps in product(KvFormat, CAPS):
        yield from _for(caps, attention_tiles(kv, caps))


def of_all_types() -> Iterator[tuple[Kernel, Caps]]:
    """Every type of weights through a mixture, on three kinds of device."""
    for kind, caps in product(TensorType, (PORTABLE, CAPS[3], CAPS[-1])):
        yield from _for(caps, placements(kind, caps))
        for arithmetic in Arithmetic:
            yield from _for(caps, kernels(MODELS["qwen3moe"], kind, caps, arithmetic, widths=(1, 8, 64)))


def _for(caps: Caps, found: Iterable[Kernel]) -> Iterator[tuple[Kernel, Caps]]:
    return ((kernel, caps) for kernel in found)


def placements(kind: TensorType, caps: Caps) -> Iterator[Kernel]:
    """The tiles that ``caps`` has room for but that no width of the models above happens to take."""
    block, x = _matrix(kind, 256, 512).blocks[0], Activations(NOTHING, 512)
    shape, groups = ExpertShape(4, 2, 64, 0, True), Groups(NOTHING, NOTHING)
    stack = _matrix(kind, 4 * 64, 512).blocks[0]
    for placement in Placement:
        if placement is not Placement.WIDE or caps.shared >= matmul.WIDE_SHARED_BYTES:
            yield matmul.dispatch(block, x, x, 64, placement).kernel
            yield experts.grouped_matmul(stack, 64, x, x, groups, shape, 64, placement).kernel


def attention_tiles(kv: KvFormat, caps: Caps) -> Iterator[Kernel]:
    """Heads of every size class, gated or not, in the tiles that ``caps`` has room for."""
    qkv, cache = Activations(NOTHING, 8192), Cache(NOTHING, NOTHING, kv, NOTHING if kv is KvFormat.INT8 else None)
    for size, gated in product((32, 64, 96, 128, 256), (False, True)):
        shape = HeadShape(8, 2, size, size, False, 1e-6, gated=gated)
        for tile in (
            attention.PORTABLE,
            attention.LARGE if size <= 128 else None,
            None if size <= 64 else attention.PORTABLE,
        ):
            if tile is None or tile.shared <= caps.shared:
                yield attention.tile_dispatch(NOTHING, qkv, cache, qkv, shape, 64, tile).kernel
        for threads in (attention.THREADS, attention.SOFTWARE_THREADS):
            yield from _kernels(
                attention.split_dispatches(NOTHING, qkv, cache, NOTHING, NOTHING, qkv, shape, 2, 4, threads)
            )


def _kernels(*programs: Iterable[Dispatch]) -> Iterator[Kernel]:
    for program in programs:
        for dispatch in program:
            yield dispatch.kernel


def _matrix(kind: TensorType, rows: int, columns: int) -> Matrix:
    streams = (NOTHING,) * (2 if has_extra(kind) else 1)
    return Matrix(kind, rows, columns, (Block(kind, 0, rows, columns, streams),))


def _weights(config: ModelConfig, kind: TensorType, *, joined: bool) -> Weights:
    embedding = _matrix(kind, config.vocab, config.hidden)
    layers = tuple(_layer(config, mixer, kind, joined=joined) for mixer in config.mixers)
    draft = None
    if config.drafts:
        join = _matrix(kind, config.hidden, 2 * config.hidden)
        draft = Draft(NOTHING, NOTHING, join, _layer(config, Mixer.ATTENTION, kind, joined=joined), NOTHING)
    return Weights(layers, NOTHING, embedding, NOTHING, embedding, draft)


def _layer(config: ModelConfig, mixer: Mixer, kind: TensorType, *, joined: bool) -> Layer:
    mixed = _attention(config, kind, joined=joined) if mixer is Mixer.ATTENTION else _delta(config, kind, joined=joined)
    ffn = (
        _experts(config, kind, joined=joined)
        if config.experts
        else _dense(config.hidden, config.inner, kind, joined=joined)
    )
    return Layer(NOTHING, mixed, NOTHING, ffn)


def _split(kind: TensorType, rows: list[int], columns: int, *, joined: bool) -> tuple[Matrix, ...]:
    return (_matrix(kind, sum(rows), columns),) if joined else tuple(_matrix(kind, n, columns) for n in rows)


def _attention(config: ModelConfig, kind: TensorType, *, joined: bool) -> AttentionMixer:
    size, kv = config.attention_size, config.heads.kv_size
    rows = [size, kv, kv, *([size] if config.heads.gated else [])]
    return AttentionMixer(
        _split(kind, rows, config.hidden, joined=joined or config.family.qkv_bias),
        NOTHING if config.family.qkv_bias else None,
        (NOTHING, NOTHING) if config.family.head_norms else None,
        _matrix(kind, config.hidden, size),
    )


def _delta(config: ModelConfig, kind: TensorType, *, joined: bool) -> DeltaMixer:
    shape = config.delta
    assert shape
    inputs = _split(kind, [shape.channels, shape.inner, 2 * shape.value_heads], config.hidden, joined=joined)
    return DeltaMixer(inputs, NOTHING, _matrix(kind, config.hidden, shape.inner))


def _dense(hidden: int, inner: int, kind: TensorType, *, joined: bool) -> DenseFfn:
    return DenseFfn(_split(kind, [inner, inner], hidden, joined=joined), _matrix(kind, hidden, inner))


def _experts(config: ModelConfig, kind: TensorType, *, joined: bool) -> ExpertFfn:
    """Where stacks are not joined, the shared expert is apart from them."""
    shape, hidden = config.experts, config.hidden
    assert shape
    own = joined and shape.shared_inner > 0
    stacks = experts.with_shared(shape) if own else shape
    shared = _dense(hidden, shape.shared_inner, kind, joined=True) if shape.shared_inner and not own else None
    gate_up = _split(kind, [stacks.count * shape.inner] * 2, hidden, joined=joined)
    down = _matrix(kind, stacks.count * hidden, shape.inner)
    return ExpertFfn((_matrix(TensorType.F32, shape.logits, hidden),), gate_up, down, shared, own)
