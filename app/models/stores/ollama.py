"""Ollama's store: a manifest a model, which names its weights by their hash.

``manifests/HOST/NAMESPACE/MODEL/TAG`` is JSON; its layer of the model's media type lies in ``blobs/sha256-HASH``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.core.files import read_start
from app.models.places import Origin
from app.models.stores.found import Found, found_at, walk

WEIGHTS = "application/vnd.ollama.image.model"
LARGEST_MANIFEST = 1 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class _Layer(msgspec.Struct, rename="camel"):
    media_type: str = ""
    digest: str = ""
    size: int = -1


class _Manifest(msgspec.Struct):
    layers: tuple[_Layer, ...] = ()


def scan_ollama(root: Path) -> Iterator[Found]:
    """The weights of every model whose manifest can be read and whose file has the size that it says."""
    for manifest in walk(root / "manifests", "*/*/*/*"):
        weights = [layer for layer in _layers(manifest) if layer.media_type == WEIGHTS]
        # Weights in several layers belong together in a way the file's own header does not tell.
        found = _found(root, weights[0], _label(manifest)) if len(weights) == 1 else None
        if found is not None:
            yield found


def _layers(manifest: Path) -> tuple[_Layer, ...]:
    try:
        return msgspec.json.decode(read_start(manifest, LARGEST_MANIFEST), type=_Manifest).layers
    except (OSError, msgspec.MsgspecError, RecursionError):
        return ()


def _found(root: Path, layer: _Layer, label: str) -> Found | None:
    match = _DIGEST.fullmatch(layer.digest)
    if match is None:
        return None
    found = found_at(root / "blobs" / f"sha256-{match[1]}", Origin.OLLAMA, label, match[1])
    return found if found is not None and found.bytes == layer.size else None


def _label(manifest: Path) -> str:
    """ "qwen3:0.6b" for a model of the library, "someone/qwen3:0.6b" for another."""
    *_, namespace, model, tag = manifest.parts
    return f"{model}:{tag}" if namespace == "library" else f"{namespace}/{model}:{tag}"
