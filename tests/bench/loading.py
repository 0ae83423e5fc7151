"""A whole model on the best adapter."""

from __future__ import annotations

from pathlib import Path

from app.engine.adapter import choose_adapter
from app.engine.arch import read_config
from app.engine.device import Gpu
from app.engine.engine import Engine
from app.engine.gguf import GgufFile
from app.engine.options import Options, prompt_columns_for
from app.engine.types import Arithmetic, KvFormat, Part


def load_whole(
    path: Path, context: int, kv: KvFormat, arithmetic: Arithmetic, *, columns: int = 0, sequences: int = 1
) -> tuple[Gpu, Engine]:
    """With its draft block where it has one; ``columns`` of a prompt chunk, by default what suits the model."""
    gpu, file = Gpu.open(choose_adapter()), GgufFile.open(path)
    config = read_config(file)
    part = Part(0, config.layers, embed=True, head=True, draft=config.drafts)
    options = Options(context, 1 << 40, kv, columns or prompt_columns_for(config, gpu), sequences, arithmetic)
    return gpu, Engine.load(gpu, file, part, options)
