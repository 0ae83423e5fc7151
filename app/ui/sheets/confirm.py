"""A question before something that cannot be taken back."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.ui import theme
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.row import row
from app.ui.widgets.text import label


class Confirm(QWidget):
    WIDTH = 420
    agreed = Signal()
    declined = Signal()

    def __init__(self, text: str, word: str, stay: str = "Stay") -> None:
        super().__init__()
        lines = column(self, 16)
        lines.addWidget(label(text, theme.BODY, 400, "soft", wrap=True))
        self.yes = Button(word, "strong", self.agreed.emit)
        self.no = Button(stay, "", self.declined.emit)
        lines.addLayout(row(None, self.no, self.yes))
