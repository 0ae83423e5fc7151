"""Files too large for the repository: a folder ``shared`` beside the checkout, or the one ``POOLED_SHARED`` names."""

import os
from pathlib import Path

import pytest


def shared_root() -> Path:
    return Path(os.environ.get("POOLED_SHARED", Path(__file__).parents[2] / "shared"))


def shared_file(name: str) -> Path:
    """The file, or a skip that says what is missing."""
    path = shared_root() / name
    if not path.exists():
        pytest.skip(f"needs {name} in a folder 'shared' beside the checkout")
    return path
