"""Stores as other programs lay them out, below a home folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

MODEL = "application/vnd.ollama.image.model"


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def put_ollama(home: Path, content: bytes, name: str = "library/tiny/latest", **changes: Any) -> Path:
    """The blob. ``changes`` are of the model's layer."""
    root, digest = home / ".ollama" / "models", sha256_of(content)
    layer = {"mediaType": MODEL, "digest": f"sha256:{digest}", "size": len(content), **changes}
    other = {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "0" * 64, "size": 3}
    manifest = {"schemaVersion": 2, "config": {"size": 1}, "layers": [other, layer]}
    put(root / "manifests" / "registry.test" / name, json.dumps(manifest).encode())
    return put(root / "blobs" / f"sha256-{digest}", content)


def put_lm_studio(home: Path, content: bytes, name: str = "m.gguf") -> Path:
    return put(home / ".lmstudio" / "models" / "someone" / "tiny-GGUF" / name, content)


def put_hugging_face(home: Path, content: bytes, name: str = "m.gguf", commit: str = "c1") -> Path:
    """The name in the snapshot, a link to the blob as the cache makes it."""
    folder = home / ".cache" / "huggingface" / "hub" / "models--someone--tiny-GGUF"
    blob = put(folder / "blobs" / sha256_of(content), content)
    link = folder / "snapshots" / commit / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(blob)
    return link


def content_of(home: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's bytes and date, to see that nothing was changed."""
    files = (path for path in home.rglob("*") if path.is_file() and "pooled" not in path.relative_to(home).parts)
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
