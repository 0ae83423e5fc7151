"""What this window remembers: name, pledge and look with the other settings, text size and motion beside them."""

from __future__ import annotations

import logging
from enum import Enum
from pathlib import Path

import msgspec

from app.core.errors import FileError
from app.core.files import write_whole
from app.core.paths import data_dir
from app.core.settings import load_settings, save_settings

log = logging.getLogger(__name__)

FILE = "window.json"
SMALLEST_TEXT, LARGEST_TEXT = 100, 200


class Look(Enum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Preferences(msgspec.Struct, frozen=True):
    """``text`` is the size of text in percent; ``gb`` 0: never chosen."""

    name: str = ""
    gb: float = 0.0
    look: Look = Look.SYSTEM
    text: int = 100
    motion: bool = True


class _Window(msgspec.Struct, frozen=True):
    text: int = 100
    motion: bool = True


def read_preferences() -> Preferences:
    """What is missing or damaged is as never set; a device without a name gets one."""
    saved, window = load_settings(), _read(data_dir() / FILE)
    text = min(max(window.text, SMALLEST_TEXT), LARGEST_TEXT)
    return Preferences(saved.name, saved.pledge_gb, Look(saved.theme), text, window.motion)


def _read(path: Path) -> _Window:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Window)
    except FileNotFoundError:
        return _Window()
    except (OSError, msgspec.MsgspecError):
        log.warning("%s cannot be read and starts anew", FILE)
        return _Window()


def write_preferences(preferences: Preferences) -> None:
    """A full disk costs only the memory of it."""
    saved = msgspec.structs.replace(
        load_settings(), name=preferences.name, pledge_gb=preferences.gb, theme=preferences.look.value
    )
    window = _Window(preferences.text, preferences.motion)
    try:
        save_settings(saved)
        write_whole(data_dir() / FILE, msgspec.json.encode(window))
    except (OSError, FileError) as error:
        log.warning("the window's preferences are not saved: %s", error)
