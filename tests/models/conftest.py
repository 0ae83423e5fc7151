"""Every test of models has an empty home, so that nothing of this computer is found, and waits for no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models import refusals

STORES = ("OLLAMA_MODELS", "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def _empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setenv("POOLED_HOME", str(home / "pooled"))
    for name in STORES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(refusals, "BACKOFF", 0.0)
