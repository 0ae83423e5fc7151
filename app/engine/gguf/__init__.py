"""GGUF files: header, tensor table and block formats, every number checked before it is used."""

from app.engine.gguf.file import GgufFile, TensorInfo, identity_extents
from app.engine.gguf.types import TensorType

__all__ = ["GgufFile", "TensorInfo", "TensorType", "identity_extents"]
