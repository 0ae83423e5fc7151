"""Small tables of values by name, each a JSON file in the models folder that several programs may change."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from filelock import FileLock, Timeout

from app.core.files import read_start, write_whole
from app.core.paths import models_dir

log = logging.getLogger(__name__)

LARGEST_TABLE = 16 << 20
MOST_ENTRIES = 2000
LOCKED_WITHIN = 3.0

T = TypeVar("T")


@dataclass(frozen=True)
class Stamp:
    """A file as it is now: another size or date (ns) means other content."""

    path: Path
    bytes: int
    changed: int

    @property
    def text(self) -> str:
        return f"{self.bytes} {self.changed} {self.path}"


def stamp_of(path: Path) -> Stamp | None:
    """None for what is no file, or cannot be seen."""
    try:
        stat = path.stat()
        return Stamp(path, stat.st_size, stat.st_mtime_ns) if path.is_file() else None
    except (OSError, ValueError):
        return None


class Kept(Generic[T]):
    """One table. A damaged one counts as empty: all that is kept here can be found out again."""

    def __init__(self, name: str, kind: type[T]) -> None:
        self._name = name
        self._kind = kind

    def all(self) -> Mapping[str, T]:
        stamp = stamp_of(self._path)
        return _read(stamp, self._kind) if stamp else {}

    def get(self, name: str) -> T | None:
        return self.all().get(name)

    def put(self, name: str, value: T | None) -> None:
        """None takes the entry out. A table that cannot be written keeps what it had."""
        if self.get(name) == value:
            return
        try:
            with FileLock(self._path.with_suffix(".lock"), timeout=LOCKED_WITHIN):
                # Another program, or a clock that stands still between two writes, must not be missed.
                _read.cache_clear()
                entries = {known: kept for known, kept in self.all().items() if known != name}
                if value is not None:
                    entries[name] = value
                newest = dict(list(entries.items())[-MOST_ENTRIES:])
                write_whole(self._path, msgspec.json.encode(newest))
                _read.cache_clear()
        except (OSError, Timeout) as error:
            log.warning("%s could not be saved: %s", self._path.name, error)

    @property
    def _path(self) -> Path:
        return models_dir() / f".{self._name}.json"


@lru_cache(maxsize=16)
def _read(stamp: Stamp, kind: type[Any]) -> Mapping[str, Any]:
    try:
        raw = read_start(stamp.path, LARGEST_TABLE)
        entries = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return {name: msgspec.json.decode(entry, type=kind) for name, entry in entries.items()}
    except (OSError, msgspec.MsgspecError):
        log.warning("%s is damaged and is made anew", stamp.path.name)
        return {}
