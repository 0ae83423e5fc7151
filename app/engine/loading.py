"""Loading as an application wants it: as much at a time as the pledge has room for, launched as suits this device."""

from __future__ import annotations

from dataclasses import replace

from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.model import Cancelled, Loaded
from app.engine.options import Options, prompt_columns_for, roomiest, widest
from app.engine.tuning import tuned
from app.engine.types import Part


def load_roomy(
    gpu: Gpu, file: GgufFile, part: Part, options: Options, loaded: Loaded | None = None,
    cancelled: Cancelled = lambda: False,
) -> Engine:  # fmt: skip
    """``Engine.load`` of ``roomy`` options with the quickest placements known; errors as there."""
    options = roomy(gpu, file, part, options)
    gpu.caps = tuned(gpu, file, part, options, cancelled)
    return Engine.load(gpu, file, part, options, loaded, cancelled)


def roomy(gpu: Gpu, file: GgufFile, part: Part, options: Options) -> Options:
    """With the widest prompt chunks that the pledge has room for, then the most sequences."""
    binding = gpu.info.binding
    options = replace(options, prompt_columns=prompt_columns_for(read_config(file), gpu))
    return roomiest(file, part, widest(file, part, options, binding), binding)
