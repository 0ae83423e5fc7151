"""Signs drawn from the SVG files in ``resources/icons``, in any colour."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.core.paths import resources_dir

PIXELS = 64


@cache
def _source(name: str) -> str:
    return (resources_dir() / "icons" / f"{name}.svg").read_text("utf-8")


def draw_icon(painter: QPainter, name: str, box: QRectF, colour: str) -> None:
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    renderer.render(painter, box)


def icon(name: str, colour: str) -> QIcon:
    picture = QPixmap(PIXELS, PIXELS)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    draw_icon(painter, name, QRectF(0, 0, PIXELS, PIXELS), colour)
    painter.end()
    return QIcon(picture)
