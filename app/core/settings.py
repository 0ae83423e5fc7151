"""What a person has set on this computer, kept in ``settings.json``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from app.core.animals import random_name
from app.core.errors import FileError
from app.core.files import read_start, write_whole
from app.core.paths import data_dir
from app.core.ports import API_PORT, HIGHEST_PORT

log = logging.getLogger(__name__)

LARGEST_FILE = 1 << 20
MOST_GB = 4_096
MOST_CHECKPOINTS = 16


class RoomDefaults(msgspec.Struct, frozen=True):
    """How a new room starts. The words are those of ``RoomSettings``; one that is not known there is ignored."""

    ask_first: bool = True
    visibility: str = "all"
    split: str = "speed"
    auto_redeal: bool = True
    persona: str = "default"
    wording: str = "focused"
    length: str = "normal"
    thinking: bool = False
    kv: str = "f16"
    hidden: str = "f16"
    checkpoints: Annotated[int, msgspec.Meta(ge=0, le=MOST_CHECKPOINTS)] = 2
    checkpoints_on_disk: bool = True
    api_clients: bool = True


class ServeSettings(msgspec.Struct, frozen=True):
    """The API for programs on this computer; ``port`` 0: any that is free. Its key is kept with the secrets."""

    on: bool = False
    port: Annotated[int, msgspec.Meta(ge=0, le=HIGHEST_PORT)] = API_PORT


class RelaySettings(msgspec.Struct, frozen=True):
    """A relay for networks that let no direct path through. Its password or secret is kept with the secrets."""

    url: str = ""
    user: str = ""
    shared: bool = False
    """The relay and this computer share a secret, from which credentials that expire are made."""
    credentials: str = ""
    """An address that hands out relays with credentials that expire; asked instead of all above."""
    only: bool = False
    """Never show this device's address to others: everything goes over the relay."""


class Settings(msgspec.Struct, frozen=True):
    """``pledge_gb`` 0: what the memory rule gives. ``signal`` lists room servers, tried before the own one."""

    name: str = ""
    pledge_gb: Annotated[float, msgspec.Meta(ge=0, le=MOST_GB)] = 0.0
    theme: Literal["system", "light", "dark"] = "system"
    signal: tuple[str, ...] = ()
    cloud: bool = True
    """Whether the public room server may be asked when nobody nearby answers."""
    room_weights: bool = True
    """Whether weights are taken from, and given to, other devices of a room."""
    relay: RelaySettings = RelaySettings()
    serve: ServeSettings = ServeSettings()
    room: RoomDefaults = RoomDefaults()


def settings_path() -> Path:
    return data_dir() / "settings.json"


def load_settings() -> Settings:
    """The saved settings, or the defaults with a fresh name. A damaged file is kept beside as ``.damaged``."""
    settings = _read(settings_path())
    return settings if settings.name else msgspec.structs.replace(settings, name=random_name())


def save_settings(settings: Settings) -> None:
    """Raises FileError when the disk refuses; what was saved before is then still there."""
    content = msgspec.json.format(msgspec.json.encode(settings), indent=1)
    try:
        write_whole(settings_path(), content + b"\n")
    except OSError as error:
        raise FileError(f"The settings could not be saved: {error.strerror}.", "Make room on the disk.") from error


def _read(path: Path) -> Settings:
    try:
        return msgspec.json.decode(read_start(path, LARGEST_FILE), type=Settings)
    except FileNotFoundError:
        return Settings()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        log.warning("settings.json cannot be read and is set aside: %s", error)
        _set_aside(path)
        return Settings()


def _set_aside(path: Path) -> None:
    try:
        path.replace(path.with_suffix(".json.damaged"))
    except OSError as error:
        log.warning("settings.json cannot be moved: %s", error.strerror)
