"""Asks for a model file."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget


def choose_model_file(window: QWidget) -> Path | None:
    """None when nothing was chosen."""
    chosen, _ = QFileDialog.getOpenFileName(window, "Open a model file", "", "Models (*.gguf)")
    return Path(chosen) if chosen else None
