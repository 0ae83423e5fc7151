"""A weight file that another program keeps, and a walk over its folders that no damage ends."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.models.kept import stamp_of
from app.models.places import Origin

log = logging.getLogger(__name__)

MOST_FILES = 5000
"""Of one store; whatever a folder holds, looking at it has an end."""
LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True)
class Found:
    """``sha256`` is what the store calls the file by, "" where it says none."""

    path: Path
    bytes: int
    sha256: str
    origin: Origin
    label: str

    @property
    def begins_model(self) -> bool:
        """Not a later part of a model in several files."""
        return LATER_PART.search(self.path.name) is None


def walk(root: Path, pattern: str) -> Iterator[Path]:
    """The files that match, as far as they can be seen."""
    try:
        yield from sorted(islice((path for path in root.glob(pattern) if stamp_of(path)), MOST_FILES))
    except OSError as error:
        log.info("%s cannot be looked through: %s", root, error.strerror)


def found_at(path: Path, origin: Origin, label: str, sha256: str = "") -> Found | None:
    """None for what is not there, and for an empty file."""
    stamp = stamp_of(path)
    return Found(path, stamp.bytes, sha256, origin, label) if stamp and stamp.bytes else None
