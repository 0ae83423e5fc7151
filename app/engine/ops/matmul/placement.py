"""Which threads compute which outputs of a GEMM."""

from __future__ import annotations

from enum import Enum


class Placement(Enum):
    """(rows, columns) of a workgroup. All sum in the same order."""

    NARROW = (64, 16)
    """Fits the 16 KB of workgroup memory that every GPU has."""
    MEDIUM = (64, 32)
    """Fits them too."""
    WIDE = (128, 64)
    """For chunks of 64 columns and more where there are 24 KB."""
    ROWWISE = (64, 4)
    """For processors that imitate a GPU."""

    @property
    def rows(self) -> int:
        return self.value[0]

    @property
    def columns(self) -> int:
        return self.value[1]


WIDE_SHARED_BYTES = 24 << 10


_FEW_GROUPS = 64


def placement_for(rows: int, columns: int, shared: int, *, software: bool) -> Placement:
    """``shared`` bytes of workgroup memory are there. A short matrix takes tiles that leave no processor idle."""
    if software:
        return Placement.ROWWISE
    wide = -(-rows // Placement.WIDE.rows) * -(-columns // Placement.WIDE.columns)
    fits = columns % Placement.WIDE.columns == 0 and shared >= WIDE_SHARED_BYTES
    return Placement.WIDE if fits and wide >= _FEW_GROUPS else Placement.NARROW
