"""Model families: from GGUF metadata to a checked description. Another family is refused by name."""

from app.engine.arch.dense import DenseConfig, read_config

__all__ = ["DenseConfig", "read_config"]
