"""The Hugging Face cache: ``models--OWNER--NAME/snapshots/COMMIT/NAME.gguf``, links to blobs named by their hash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from app.models.places import Origin
from app.models.stores.found import Found, found_at, walk

_SHA256 = re.compile(r"[0-9a-f]{64}")


def scan_hugging_face(root: Path) -> Iterator[Found]:
    """Every weight file of every snapshot, each content once."""
    seen: set[Path] = set()
    for path in walk(root, "models--*/snapshots/**/*.gguf"):
        blob = _blob_of(path)
        found = found_at(path, Origin.HUGGING_FACE, path.stem, _hash_in(blob))
        if blob not in seen and found is not None:
            yield found
        seen.add(blob)


def _blob_of(path: Path) -> Path:
    """Where the bytes lie: another file where the system knows links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _hash_in(blob: Path) -> str:
    """Large files' blobs are named by their SHA-256, others by another hash, copies not at all."""
    return blob.name if blob.parent.name == "blobs" and _SHA256.fullmatch(blob.name) else ""
