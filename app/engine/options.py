"""What an engine is loaded with, what that takes, and what suits a kind of device."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.engine.arch import ModelConfig, read_config
from app.engine.device import Gpu
from app.engine.gguf import GgufFile
from app.engine.memory import aligned
from app.engine.model import plan_weights
from app.engine.ops.delta import state_bytes
from app.engine.ops.matvec import Tuning
from app.engine.ops.rope import cache_bytes
from app.engine.programs import PROMPT_WIDTHS
from app.engine.types import Arithmetic, KvFormat, Part
from app.engine.workspace import workspace_bytes

USUAL = 256
"""Columns of a prompt chunk that a deal's reserve counts on."""
HEADROOM = 1.1
"""Vectors, tables and saved states beside what a footprint counts."""
SPARE = 1 << 20
USUAL_LENGTH = 4096
"""Positions of a conversation that planning counts on where its state is saved."""
SAVED_STATES = 6
"""What more conversations at a time must leave room for: a second turn that is read again costs more than a wait."""
MOST_SEQUENCES = 4
"""Conversations whose steps share a pass: a quarter of its columns is room for a token and three drafts."""
GPU_TUNING = Tuning(lanes=32, grain=2, teams=4, rows=2, columns=8, fused_norm=True)
SOFTWARE_TUNING = Tuning(lanes=8, grain=4, teams=4, rows=8, columns=1, fused_norm=False)


@dataclass(frozen=True)
class Options:
    """``context`` positions of each of ``sequences`` sequences are kept, ``pledge`` bytes may be taken.

    ``prompt_columns`` are read at a time.
    """

    context: int
    pledge: int
    kv: KvFormat = KvFormat.F16
    prompt_columns: int = USUAL
    sequences: int = 1
    arithmetic: Arithmetic = Arithmetic.EXACT


@dataclass(frozen=True)
class Footprint:
    """Bytes a part takes on the GPU, known before it is loaded. ``caches`` count recurrent states, too."""

    weights: int
    caches: int
    scratch: int

    @property
    def total(self) -> int:
        return self.weights + self.caches + self.scratch


def footprint(file: GgufFile, part: Part, options: Options, binding: int) -> Footprint:
    """What ``Engine.load`` will allocate for matrices, caches and scratch (vectors and tables add under 1 %)."""
    config = read_config(file)
    weights = plan_weights(file, config, part, binding).nbytes
    caches, scratch = workspace_bytes(
        config, part, options.prompt_columns, options.context, options.kv, options.sequences
    )
    return Footprint(weights, caches, scratch)


def taken_bytes(file: GgufFile, part: Part, options: Options, binding: int) -> int:
    """The same with vectors, the table of angles, two chunks on their way back, and a little for rounding up."""
    config = read_config(file)
    vectors = sum(aligned(tensor.nbytes) for tensor in file.tensors.values() if len(tensor.shape) == 1)
    angles = options.context * config.heads.rotary * 4
    readback = 2 * options.prompt_columns * config.hidden * 4
    return footprint(file, part, options, binding).total + vectors + angles + readback + SPARE


def tuning_for(gpu: Gpu) -> Tuning:
    """The fixed default order of summation and placement for a kind of device."""
    return SOFTWARE_TUNING if gpu.caps.software else GPU_TUNING


def prompt_columns_for(config: ModelConfig, gpu: Gpu) -> int:
    """Columns of a prompt chunk that suit a model: an expert's weights are read for more of them in wide chunks.

    Other models gain nothing past 512 (docs/benchmarks.md), and imitated GPUs nothing past 256.
    """
    if gpu.caps.software:
        return 256
    return 2048 if config.experts else 512


def widest(file: GgufFile, part: Part, options: Options, binding: int) -> Options:
    """The same with the widest prompt chunks, up to those asked for, that the pledge has room for.

    A deal counts on the usual chunks, so those are the least.
    """
    wider = [width for width in sorted(PROMPT_WIDTHS, reverse=True) if USUAL < width <= options.prompt_columns]
    tried = [replace(options, prompt_columns=width) for width in wider]
    fitting = (each for each in tried if _fits(file, part, each, binding))
    return next(fitting, replace(options, prompt_columns=min(USUAL, options.prompt_columns)))


def most_sequences(file: GgufFile, part: Part) -> int:
    """How many conversations a part may be asked for at a time: only a whole model for more than one."""
    whole = part.embed and part.head and part.layers == read_config(file).layers
    return MOST_SEQUENCES if whole else 1


def roomiest(file: GgufFile, part: Part, options: Options, binding: int) -> Options:
    """The same with the most sequences, up to ``most_sequences``, that the pledge has room for beside saved states."""
    config, most = read_config(file), most_sequences(file, part)
    saved = SAVED_STATES * _usual_caches(file, part, options, binding)
    tried = [replace(options, sequences=count) for count in range(most, options.sequences, -1)]
    fitting = (
        each for each in tried if _largest(config, each) <= binding and _fits(file, part, each, binding, beside=saved)
    )
    return next(fitting, options)


def _usual_caches(file: GgufFile, part: Part, options: Options, binding: int) -> int:
    """Bytes of one conversation of a usual length."""
    usual = replace(options, context=min(options.context, USUAL_LENGTH), sequences=1)
    return footprint(file, part, usual, binding).caches


def _fits(file: GgufFile, part: Part, options: Options, binding: int, *, beside: int = 0) -> bool:
    return footprint(file, part, options, binding).total * HEADROOM + beside <= options.pledge


def _largest(config: ModelConfig, options: Options) -> int:
    """Bytes of the largest buffer that grows with the sequences: those of a layer lie in one."""
    keys = cache_bytes(config.heads, options.context * options.sequences, options.kv)
    return max(keys, *state_bytes(config.delta, options.sequences)) if config.delta else keys


def arithmetic_for(gpu: Gpu) -> Arithmetic:
    """The default: fast where the GPU multiplies packed bytes itself, which Apple's and imitated ones do not."""
    slow = gpu.caps.software or gpu.info.backend == "Metal"
    return Arithmetic.EXACT if slow else Arithmetic.FAST
