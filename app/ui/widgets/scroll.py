"""A column that scrolls."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.ui import theme
from app.ui.widgets.row import row


class Scroll(QScrollArea):
    """``lines`` is the column, at most ``widest`` pixels wide and centred."""

    def __init__(self, widest: int, margin: int = theme.GUTTER) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAutoFillBackground(False)
        self.inner = QWidget()
        self.inner.setMaximumWidth(theme.px(widest))
        self.lines = QVBoxLayout(self.inner)
        self.lines.setContentsMargins(0, theme.px(16), 0, theme.px(16))
        self.lines.setSpacing(theme.px(8))
        clear = QWidget()
        clear.setObjectName("clear")
        self._line = line = row()
        line.addStretch(1)
        line.addWidget(self.inner, 1000)
        line.addStretch(1)
        line.setContentsMargins(theme.px(margin), 0, theme.px(margin), 0)
        clear.setLayout(line)
        self.setWidget(clear)
        self._margin = margin

    def set_margin(self, margin: int) -> None:
        if margin != self._margin:
            self._margin = margin
            self._line.setContentsMargins(theme.px(margin), 0, theme.px(margin), 0)
