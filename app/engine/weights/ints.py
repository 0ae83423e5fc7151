"""Formats whose values are a scale times a small whole number, plus an offset: what packed dot products take."""

from __future__ import annotations

from app.engine.gguf.types import TensorType

_TWO_SCALES = frozenset({TensorType.Q2_K, TensorType.Q3_K, TensorType.Q6_K})
_NO_OFFSET = frozenset({TensorType.Q8_0, TensorType.IQ4_NL, TensorType.IQ4_XS})


def has_two_scales(kind: TensorType) -> bool:
    """Whether the halves of a unit have scales of their own."""
    return kind in _TWO_SCALES


def has_offset(kind: TensorType) -> bool:
    """Whether something is added to scale times number."""
    return kind not in _NO_OFFSET
