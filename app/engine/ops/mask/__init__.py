"""A grammar's choice of ids, one bit an id and column, laid over logits before anything is chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.engine.memory import Slice
from app.engine.ops.matvec import Activations
from app.engine.ops.render import template
from app.engine.program import Dispatch, Kernel

FORBIDDEN = -3.0e38
"""The logit of an id that may not follow: finite, so that it is not taken for a fault, and without any weight."""


def words_of(vocab: int) -> int:
    """32-bit words of a column's mask, id i in bit i % 32 of word i // 32."""
    return -(-vocab // 32)


def dispatch(logits: Activations, masks: Slice, vocab: int, columns: int) -> Dispatch:
    """``masks`` [columns, words]."""
    constants = (("VOCAB", vocab), ("STRIDE", logits.stride), ("WORDS", words_of(vocab)))
    kernel = Kernel(template("mask/kernel.wgsl").substitute(), ("write", "read"), constants, "mask")
    return Dispatch(kernel, (logits.slice, masks), (-(-vocab // 256), columns, 1))


def reference(logits: NDArray[np.float32], mask: NDArray[np.uint32]) -> NDArray[np.float32]:
    """[columns, vocab] with what is forbidden pushed out."""
    allowed = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little")[:, : logits.shape[1]]
    return np.where(allowed, logits, np.float32(FORBIDDEN))
