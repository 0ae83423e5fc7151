"""The room's settings: the creator's choices, saved with the room."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from app.prompt.chat import Style
from app.room.planner import SplitMode
from app.room.precision import Precision


class Visibility(Enum):
    """Who reads the chat."""

    EVERYONE = "all"
    OWNER = "host"
    ASKER = "asker"


@dataclass(frozen=True)
class RoomSettings:
    """``ask_first``: new devices wait for Allow. ``auto_redeal``: layers are dealt again by themselves."""

    ask_first: bool = True
    visibility: Visibility = Visibility.EVERYONE
    style: Style = field(default_factory=Style)
    split: SplitMode = SplitMode.SPEED
    auto_redeal: bool = True
    kv: str = "f16"
    """How hybrids keep keys and values: "f16", or "q8" for about half the memory."""
    precision: Precision = Precision.HALF
    """How hidden states travel where every device of the chain is one of ours."""
    checkpoints: int = 2
    """How many answers' states are kept to go on from; 0 keeps none."""
    checkpoints_on_disk: bool = True
    api_clients: bool = True
    """Whether programs may ask the room."""


def may_read(visibility: Visibility, *, reader: str, owner: str, asker: str) -> bool:
    """Whether ``reader`` gets the text of an exchange; ids are peer ids. The owner always does."""
    if reader == owner or visibility is Visibility.EVERYONE:
        return True
    return visibility is Visibility.ASKER and reader == asker
