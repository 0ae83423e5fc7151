"""What a person asks the room (spec: rooms §17)."""

from __future__ import annotations

from dataclasses import dataclass

from app.prompt.chat import Style


@dataclass(frozen=True)
class Question:
    """One question. ``asker`` is a peer id; ``mid`` names the exchange in the whole room.

    ``seed`` draws the answer's words. ``style`` None: the room's.
    """

    asker: str
    name: str
    text: str
    mid: str
    seed: int = 0
    style: Style | None = None
