"""What custom painting has in common."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE = Qt.AlignmentFlag.AlignCenter


@contextmanager
def painting(widget: QWidget) -> Generator[QPainter]:
    """Smooth edges, no outline until one is asked for."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    yield painter
    painter.end()


def fill(painter: QPainter, box: QRectF, colour: QColor | str, radius: float) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    painter.drawRoundedRect(box, radius, radius)


def outline(painter: QPainter, box: QRectF, colour: QColor | str, radius: float, width: float = 1) -> None:
    """A line just inside the box."""
    half = width / 2
    painter.setPen(QPen(QColor(colour), width))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box.adjusted(half, half, -half, -half), radius, radius)
    painter.setPen(Qt.PenStyle.NoPen)


def dot(painter: QPainter, centre: QPointF, radius: float, colour: QColor | str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    painter.drawEllipse(centre, radius, radius)


def width_of(text: str, font: QFont) -> float:
    return QFontMetricsF(font).horizontalAdvance(text)


def write(
    painter: QPainter,
    box: QRectF,
    text: str,
    font: QFont,
    colour: QColor | str,
    where: Qt.AlignmentFlag = LEFT,
) -> float:
    """One line, cut with an ellipsis where it does not fit. Returns the width it took."""
    shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width() + 0.5)
    painter.setFont(font)
    painter.setPen(QColor(colour))
    painter.drawText(box, where, shown)
    painter.setPen(Qt.PenStyle.NoPen)
    return width_of(shown, font)
