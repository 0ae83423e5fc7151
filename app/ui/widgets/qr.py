"""A QR code, black on white in every theme so that cameras read it."""

from __future__ import annotations

import qrcode
from PySide6.QtCore import QRect, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui import theme
from app.ui.paint import fill, outline

QUIET_ZONE = 2


class Qr(QWidget):
    """At least ``side`` pixels wide; from 112 on a phone reads it."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self._side = side
        self._text = ""
        self._matrix: list[list[bool]] = []
        self.setFixedSize(side, side)
        self.setAccessibleName("QR code of the invite link")

    def sizeHint(self) -> QSize:
        return self.size()

    def set_text(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._matrix = matrix(text) if text else []
            self._fit()

    def _fit(self) -> None:
        """As wide as whole cells make it: scaled cells blur for cameras."""
        count = len(self._matrix) + 2 * QUIET_ZONE
        side = -(-self._side // count) * count
        self.setFixedSize(side, side)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        fill(painter, box, "#FFFFFF", 8)
        outline(painter, box, theme.palette().line, 8)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self._cells(painter)
        painter.end()

    def _cells(self, painter: QPainter) -> None:
        cell = self.width() // (len(self._matrix) + 2 * QUIET_ZONE)
        start = cell * QUIET_ZONE
        for y, line in enumerate(self._matrix):
            for x, dark in enumerate(line):
                if dark:
                    box = QRect(start + x * cell, start + y * cell, cell, cell)
                    painter.fillRect(box, QColor("#14161D"))


def matrix(text: str) -> list[list[bool]]:
    code = qrcode.QRCode(error_correction=qrcode.ERROR_CORRECT_L, border=0)
    code.add_data(text)
    code.make(fit=True)
    return [[bool(cell) for cell in line] for line in code.get_matrix()]
