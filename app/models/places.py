"""Weight files that lie elsewhere on this computer and are used where they are: never changed, never deleted."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import msgspec

from app.models.kept import Kept, stamp_of


class Origin(Enum):
    """Where a model on this computer came from; the value is how a person is told."""

    FETCHED = "fetched"
    ROOM = "from the room"
    OWN = "own file"
    OLLAMA = "Ollama"
    LM_STUDIO = "LM Studio"
    HUGGING_FACE = "Hugging Face"


class _Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``bytes`` and ``changed`` (ns) are the file's when its content was last known to be right."""

    path: str
    bytes: int
    changed: int
    origin: Origin


_PLACES = Kept("places", _Place)


def note_place(key: str, name: str, path: Path, origin: Origin) -> None:
    """The file ``name`` of a model lies at ``path``; its content is known to be right just now."""
    stamp = stamp_of(path)
    if stamp is not None:
        _PLACES.put(_entry(key, name), _Place(str(path), stamp.bytes, stamp.changed, origin))


def forget_place(key: str, name: str) -> None:
    """The file itself stays."""
    _PLACES.put(_entry(key, name), None)


def place_of(key: str, name: str) -> Path | None:
    """Where the file lies; None when nobody knows, or it was changed since."""
    place = _PLACES.get(_entry(key, name))
    stamp = stamp_of(Path(place.path)) if place else None
    if place is None or stamp is None or (stamp.bytes, stamp.changed) != (place.bytes, place.changed):
        return None
    return stamp.path


def origin_of(key: str, name: str) -> Origin | None:
    place = _PLACES.get(_entry(key, name))
    return place.origin if place else None


def _entry(key: str, name: str) -> str:
    return f"{key}/{name}"
