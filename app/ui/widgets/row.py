"""Widgets side by side."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.ui import theme


def row(*widgets: QWidget | None, spacing: int = 8) -> QHBoxLayout:
    """None stands for a stretch."""
    made = QHBoxLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setSpacing(theme.px(spacing))
    for widget in widgets:
        if widget is None:
            made.addStretch(1)
        else:
            made.addWidget(widget)
    return made
