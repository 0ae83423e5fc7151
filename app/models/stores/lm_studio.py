"""LM Studio's store: ``PUBLISHER/REPOSITORY/NAME.gguf``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.models.places import Origin
from app.models.stores.found import Found, found_at, walk


def scan_lm_studio(root: Path) -> Iterator[Found]:
    """Every weight file; what is still being downloaded has another ending."""
    for path in walk(root, "*/*/*.gguf"):
        found = found_at(path, Origin.LM_STUDIO, path.stem)
        if found is not None:
            yield found
