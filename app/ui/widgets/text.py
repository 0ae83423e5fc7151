"""Labels in the theme's sizes and tones."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.ui import theme
from app.ui.fonts import font

LINE_HEIGHT = 122
"""Percent of the font's own distance; together about 1.5 times its size."""


class Paragraph(QLabel):
    """Plain text that wraps, with the theme's distance between lines."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._plain = ""
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setText(text)

    def setText(self, text: str) -> None:
        if text != self._plain:
            self._plain = text
            lines = escape(text).replace("\n", "<br>")
            super().setText(f'<p style="margin: 0; line-height: {LINE_HEIGHT}%">{lines}</p>' if text else "")

    def text(self) -> str:
        return self._plain


def label(text: str = "", size: float = theme.BODY, weight: int = 400, tone: str = "", *, wrap: bool = False) -> QLabel:
    """Plain text only: names and messages come from other people's devices."""
    made = Paragraph(text) if wrap else QLabel(text)
    if not wrap:
        made.setTextFormat(Qt.TextFormat.PlainText)
    made.setFont(font(size, weight))
    made.setProperty("tone", tone)
    return made


def code_label(text: str = "", size: float = theme.BODY, weight: int = 400) -> QLabel:
    made = label(text, size, weight)
    made.setFont(font(size, weight, mono=True))
    return made


def set_tone(shown: QLabel, tone: str) -> None:
    if shown.property("tone") != tone:
        shown.setProperty("tone", tone)
        shown.style().unpolish(shown)
        shown.style().polish(shown)
