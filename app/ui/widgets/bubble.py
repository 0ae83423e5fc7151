"""A question, at the right, no wider than it needs to be."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.card import column
from app.ui.widgets.text import label

WIDEST = 0.82


class Bubble(QWidget):
    def __init__(self, text: str, asker: str = "") -> None:
        super().__init__()
        self._text = label(text, wrap=True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._frame = QFrame()
        self._frame.setObjectName("bubble")
        inside = QHBoxLayout(self._frame)
        inside.setContentsMargins(theme.px(14), theme.px(10), theme.px(14), theme.px(10))
        inside.addWidget(self._text)
        around = column(self, 4)
        if asker:
            around.addWidget(label(asker, theme.TINY, 500, "muted"), 0, Qt.AlignmentFlag.AlignRight)
        around.addWidget(self._frame, 0, Qt.AlignmentFlag.AlignRight)

    def resizeEvent(self, event: QResizeEvent) -> None:
        widest = int(self.width() * WIDEST) - theme.px(28)
        lines = self._text.text().split("\n")
        longest = max(QFontMetrics(font()).horizontalAdvance(line) for line in lines) + 4
        self._text.setFixedWidth(min(longest, widest))
