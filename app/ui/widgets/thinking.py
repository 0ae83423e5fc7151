"""The reasoning before an answer, folded away unless asked for."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.ui import theme
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.text import label


class ThinkingFold(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._open = False
        self._button = Button("", "link", self.turn, "right")
        self._text = label("", theme.SMALL, 400, "soft", wrap=True)
        self._text.hide()
        inside = column(self, 4)
        inside.addWidget(self._button)
        inside.addWidget(self._text)

    def display(self, text: str, *, running: bool) -> None:
        words = len(text.split())
        self._button.setText("Thinking…" if running else f"Thought it over in {words} words")
        self._text.setText(text.strip())

    def turn(self) -> None:
        self._open = not self._open
        self._text.setVisible(self._open)
        self._button.set_glyph("down" if self._open else "right")
        self._button.setAccessibleDescription("unfolded" if self._open else "folded")
