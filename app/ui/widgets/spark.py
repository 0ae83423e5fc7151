"""tok/s of the last minute as a filled line."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QColor, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui import theme
from app.ui.paint import painting

POINTS = 60


class Spark(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._values: tuple[float, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(theme.px(200), theme.px(76))

    def display(self, values: tuple[float, ...]) -> None:
        if values != self._values:
            self._values = values
            last = f"{values[-1]:.1f}" if values else "none yet"
            self.setAccessibleName(f"Words a second over the last minute, now {last}")
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = theme.palette()
        with painting(self) as painter:
            base = self.height() - 1.0
            painter.fillRect(0, int(base), self.width(), 1, QColor(palette.line))
            if len(self._values) < 2:
                return
            line = self._line(base)
            area = QPainterPath(line)
            area.lineTo(self.width(), base)
            area.lineTo(line.elementAt(0).x, base)  # pyright: ignore[reportAttributeAccessIssue]
            area.closeSubpath()
            painter.fillPath(area, QColor(palette.tint))
            painter.strokePath(line, QPen(QColor(palette.accent), 2))

    def _line(self, base: float) -> QPainterPath:
        """Newest at the right edge; rounded between the measurements."""
        values = self._values[-POINTS:]
        top = max(max(values) * 1.08, 1e-6)
        step = self.width() / (max(len(values), 12) - 1)
        start = self.width() - step * (len(values) - 1)
        points = [QPointF(start + i * step, base - v / top * (base - 4)) for i, v in enumerate(values)]
        path = QPainterPath(points[0])
        for i in range(len(points) - 1):
            before, after = points[max(i - 1, 0)], points[min(i + 2, len(points) - 1)]
            here, there = points[i], points[i + 1]
            bends = (here + (there - before) / 6, there - (after - here) / 6)
            first, second = (QPointF(bend.x(), min(bend.y(), base)) for bend in bends)
            path.cubicTo(first, second, there)
        return path
