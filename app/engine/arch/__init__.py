"""Model families: metadata to sizes (design: engine contract)."""

from app.engine.arch.config import Mixer, ModelConfig
from app.engine.arch.families import FAMILIES, Family
from app.engine.arch.read import read_config

__all__ = ["FAMILIES", "Family", "Mixer", "ModelConfig", "read_config"]
