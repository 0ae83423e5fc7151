"""What answers to people and answers to programs share on the device that runs the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.room.crowd import Crowd
from app.room.dealing import Dealing
from app.room.figures import Figures
from app.room.screens import Screens
from app.room.settings import RoomSettings
from app.room.turns import Turns
from app.room.writer import Writer


@dataclass(frozen=True)
class AnswerPorts:
    """One queue, one writer, and everybody who hears of it."""

    crowd: Crowd
    dealing: Dealing
    writer: Writer
    turns: Turns
    screens: Screens
    figures: Figures
    settings: Callable[[], RoomSettings]
