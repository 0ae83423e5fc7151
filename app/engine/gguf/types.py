"""Tensor types this engine computes with, by their GGUF numbers (spec: engine §1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from app.core.errors import ModelError


class TensorType(IntEnum):
    """GGUF type ids of the supported block formats."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    IQ4_NL = 20
    IQ4_XS = 23
    BF16 = 30


@dataclass(frozen=True)
class BlockFormat:
    """``values`` numbers stored in ``bytes`` bytes."""

    values: int
    bytes: int


BLOCKS: dict[TensorType, BlockFormat] = {
    TensorType.F32: BlockFormat(1, 4),
    TensorType.F16: BlockFormat(1, 2),
    TensorType.BF16: BlockFormat(1, 2),
    TensorType.Q4_0: BlockFormat(32, 18),
    TensorType.Q4_1: BlockFormat(32, 20),
    TensorType.Q5_0: BlockFormat(32, 22),
    TensorType.Q5_1: BlockFormat(32, 24),
    TensorType.Q8_0: BlockFormat(32, 34),
    TensorType.Q2_K: BlockFormat(256, 84),
    TensorType.Q3_K: BlockFormat(256, 110),
    TensorType.Q4_K: BlockFormat(256, 144),
    TensorType.Q5_K: BlockFormat(256, 176),
    TensorType.Q6_K: BlockFormat(256, 210),
    TensorType.IQ4_NL: BlockFormat(32, 18),
    TensorType.IQ4_XS: BlockFormat(256, 136),
}

# Names of formats that exist but are not computed here, so that a refusal can say which one it met.
_KNOWN_NAMES = {
    9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S",
    22: "IQ2_S", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 34: "TQ1_0",
    35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip


def type_name(code: int) -> str:
    """The format's usual name, or its number when nobody here knows it."""
    if code in TensorType.__members__.values():
        return TensorType(code).name
    return _KNOWN_NAMES.get(code, f"type {code}")


def supported(code: int, tensor: str) -> TensorType:
    """The type behind a number; ModelError names the tensor and the format otherwise."""
    try:
        return TensorType(code)
    except ValueError:
        raise ModelError(
            f"{tensor} is stored as {type_name(code)}, which this version cannot compute with.",
            "Pick a file in one of: " + ", ".join(t.name for t in TensorType) + ".",
        ) from None


def row_bytes(kind: TensorType, columns: int) -> int:
    """Bytes of one row of ``columns`` values."""
    block = BLOCKS[kind]
    return columns // block.values * block.bytes
