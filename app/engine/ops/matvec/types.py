"""What a matvec is told besides its matrix."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.memory import Slice
from app.engine.placement import Epilogue

__all__ = ["Activations", "Epilogue", "Norm", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """``lanes`` threads share a row, ``grain`` quarter units at a time: these fix the order of summation.

    The rest is placement: ``teams`` of lanes a workgroup, ``rows`` a team, ``columns`` at most a workgroup.
    ``fused_norm`` normalises inputs in every workgroup instead of in a launch of its own.
    """

    lanes: int
    grain: int
    teams: int
    rows: int
    columns: int
    fused_norm: bool


@dataclass(frozen=True)
class Norm:
    """RMSNorm of the input: its weights, the true row length and epsilon."""

    weights: Slice
    size: int
    epsilon: float


@dataclass(frozen=True)
class Activations:
    """[columns, stride] float32; ``stride`` counts floats, ``first`` is where a row's part begins."""

    slice: Slice
    stride: int
    first: int = 0
