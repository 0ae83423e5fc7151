"""What a model is made of: the sizes every kernel is made from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from app.engine.arch.families import Family
from app.engine.ops.delta import DeltaShape
from app.engine.ops.experts import ExpertShape
from app.engine.ops.rope import HeadShape


class Mixer(Enum):
    """How a layer mixes positions."""

    ATTENTION = "attention"
    DELTA = "delta"


@dataclass(frozen=True)
class ModelConfig:
    """``context`` is the most positions the model was made for; ``inner`` is 0 where experts take its place.

    ``mixers`` has one entry a layer. With ``drafts`` the file holds a draft block (MTP) after the layers.
    """

    architecture: str
    family: Family
    mixers: tuple[Mixer, ...]
    hidden: int
    inner: int
    vocab: int
    context: int
    heads: HeadShape
    delta: DeltaShape | None
    experts: ExpertShape | None
    rope_base: float
    epsilon: float
    tied: bool
    drafts: bool

    @property
    def layers(self) -> int:
        return len(self.mixers)

    @property
    def attention_size(self) -> int:
        return self.heads.heads * self.heads.size
