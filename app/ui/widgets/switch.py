"""On or off."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QCheckBox

from app.ui import theme
from app.ui.paint import dot, fill, painting


class Switch(QCheckBox):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(theme.px(40), theme.px(24))

    def hitButton(self, pos: object) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect())
        radius = box.height() / 2
        with painting(self) as painter:
            if not self.isEnabled():
                painter.setOpacity(0.5)
            fill(painter, box, palette.accent if self.isChecked() else palette.muted, radius)
            x = box.right() - radius if self.isChecked() else box.left() + radius
            dot(painter, QPointF(x, box.center().y()), radius - theme.px(3), palette.card)
