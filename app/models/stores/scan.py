"""All stores of other programs, where each keeps its own by default or was told to. Nothing is hashed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from app.models.places import Origin
from app.models.stores.found import Found
from app.models.stores.hugging_face import scan_hugging_face
from app.models.stores.lm_studio import scan_lm_studio
from app.models.stores.ollama import scan_ollama

_SCANS: Mapping[Origin, Callable[[Path], Iterator[Found]]] = {
    Origin.OLLAMA: scan_ollama,
    Origin.LM_STUDIO: scan_lm_studio,
    Origin.HUGGING_FACE: scan_hugging_face,
}


def scan_stores(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> tuple[Found, ...]:
    """What is there just now, each file once."""
    roots = store_roots(environment, home or Path.home())
    found = {item.path: item for origin, root in roots for item in _SCANS[origin](root)}
    return tuple(found.values())


def store_roots(environment: Mapping[str, str], home: Path) -> tuple[tuple[Origin, Path], ...]:
    """Where stores may lie; a variable takes the place of a default."""
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hub = environment.get("HF_HUB_CACHE") or Path(environment.get("HF_HOME") or cache / "huggingface") / "hub"
    told = environment.get("OLLAMA_MODELS")
    # The second is where Ollama's own installer puts a Linux service's models.
    ollama = [told] if told else [home / ".ollama" / "models", "/usr/share/ollama/.ollama/models"]
    lm_studio = [home / ".lmstudio" / "models", cache / "lm-studio" / "models"]
    return (
        *((Origin.OLLAMA, Path(root)) for root in ollama),
        *((Origin.LM_STUDIO, root) for root in lm_studio),
        (Origin.HUGGING_FACE, Path(hub)),
    )
