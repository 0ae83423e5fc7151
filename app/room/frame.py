"""One message of the hidden-state wire as a value (spec: rooms §5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

DROP_ALL = 0xFFFF


class FrameKind(IntEnum):
    """Direction and form; the number is the kind byte on the wire."""

    HIDDEN = 0
    HIDDEN_BATCH = 1
    RETURN = 2
    RETURN_BATCH = 3

    @property
    def is_return(self) -> bool:
        return self in (FrameKind.RETURN, FrameKind.RETURN_BATCH)

    @property
    def is_batch(self) -> bool:
        return self in (FrameKind.HIDDEN_BATCH, FrameKind.RETURN_BATCH)


@dataclass(frozen=True)
class Control:
    """State commands that ride on a frame, applied in the order rollback, save, drop, reset, load."""

    reset: bool = False
    rollback: int | None = None
    save: int = 0
    load: int = 0
    drop: tuple[int, ...] = ()


@dataclass(frozen=True)
class Frame:
    """``columns`` hidden states from ``position`` on, column after column, little-endian.

    ``full``: as floats of 32 bits; the wire's header does not say so, whoever dealt the layers did.
    """

    kind: FrameKind
    position: int
    columns: int
    payload: bytes
    spec: bool = False
    control: Control = field(default_factory=Control)
    full: bool = False
