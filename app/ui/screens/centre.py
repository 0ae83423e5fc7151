"""One card in the middle of the window: connecting, lobby, trouble."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from app.ui import theme
from app.ui.widgets.card import Card, column
from app.ui.widgets.scroll import Scroll
from app.ui.widgets.text import label

WIDTH = 460


class Centre(QWidget):
    """Fill ``lines``; they are centred."""

    def __init__(self) -> None:
        super().__init__()
        card = Card(padding=36, spacing=10)
        self.lines = card.column
        scroll = Scroll(WIDTH, margin=16)
        scroll.lines.addStretch(2)
        scroll.lines.addWidget(card)
        scroll.lines.addStretch(3)
        column(self).addWidget(scroll)

    def say(self, text: str = "", size: float = theme.BODY, weight: int = 400, tone: str = "") -> QLabel:
        made = label(text, size, weight, tone, wrap=True)
        made.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.lines.addWidget(made)
        return made

    def add(self, widget: QWidget) -> None:
        self.lines.addWidget(widget, 0, Qt.AlignmentFlag.AlignHCenter)
