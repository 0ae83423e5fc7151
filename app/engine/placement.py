"""Products of step columns, and where their sums are made: free to choose, since it changes no bit (ADR 14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from app.engine.gguf.types import TensorType


class Epilogue(Enum):
    """What happens to a sum: stored, added to what is there, or gate and up rows joined by SwiGLU.

    WEIGHTED_ADD multiplies by the column's weight before it adds.
    """

    STORE = "store"
    ADD = "add"
    SWIGLU = "swiglu"
    WEIGHTED_ADD = "weighted add"


@dataclass(frozen=True)
class Placement:
    """``teams`` of lanes a workgroup, ``rows`` a team, ``columns`` a workgroup.

    A lane loads ``ahead`` units before it goes on. ``fused``: a result that is wanted as int8 is rounded by the
    launch that makes it.
    """

    teams: int
    rows: int
    columns: int
    ahead: int = 1
    fused: bool = False


@dataclass(frozen=True)
class Job:
    """What a placement is chosen for: ``width`` step columns times all ``rows`` of a block of ``units`` each.

    ``rounded``: the result is wanted as int8.
    """

    kind: TensorType
    rows: int
    units: int
    epilogue: Epilogue
    width: int
    rounded: bool = False


Placements = Mapping[Job, Placement]
