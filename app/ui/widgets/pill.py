"""A word in a tinted pill: what the room is doing."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui import theme
from app.ui.fonts import font
from app.ui.paint import CENTRE, fill, outline, painting, width_of, write


class Pill(QWidget):
    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text, self._tone = text, ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def display(self, text: str, tone: str = "") -> None:
        """``tone`` "": busy; "good" and "bad" as the theme has them; "calm": grey."""
        if (text, tone) != (self._text, self._tone):
            self._text, self._tone = text, tone
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(int(width_of(self._text, font(theme.SMALL, 500))) + theme.px(20), theme.px(24))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect())
        colours = {"": palette.accent, "good": palette.good, "bad": palette.bad, "calm": palette.soft}
        with painting(self) as painter:
            if self._tone:
                outline(painter, box, palette.line, box.height() / 2)
            else:
                fill(painter, box, palette.tint, box.height() / 2)
            write(painter, box, self._text, font(theme.SMALL, 500), colours[self._tone], CENTRE)
