"""Where files live. ``POOLED_HOME`` moves everything under one folder, ``POOLED_MODELS`` the models alone."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

APP = "pooled"


def data_dir() -> Path:
    """Models, rooms and secrets; created on first use."""
    home = os.environ.get("POOLED_HOME")
    return _made(Path(home) if home else Path(platformdirs.user_data_dir(APP, appauthor=False)))


def models_dir() -> Path:
    """One folder a model key, each with its weight files."""
    folder = os.environ.get("POOLED_MODELS")
    return _made(Path(folder) if folder else data_dir() / "models")


def resources_dir() -> Path:
    """Files shipped with the program: inside the installed package, or the checkout's ``resources``."""
    packaged = Path(__file__).parent.parent / "resources"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "resources"


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
