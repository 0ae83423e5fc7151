"""The layers of a model as cells, a lane a device: filled where the device holds them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.room.state import Device
from app.ui import theme, words
from app.ui.device_words import status_line
from app.ui.fonts import font
from app.ui.paint import RIGHT, fill, painting, write

MOST_CELLS = 64
LANE, CELL_HIGH, GAP = 27, 12, 2
NAME, FIGURE, NARROW = 178, 104, 520
NARROW_LANE = 46


def cells_held(layers: tuple[int, int], total: int, cells: int) -> range:
    """Which of ``cells`` columns a 1-based layer range fills; at least one."""
    first, last = layers
    start = (first - 1) * cells // total
    return range(start, max(start + 1, last * cells // total))


class Lanes(QWidget):
    """``loading`` shows how far each device is instead of its time a word."""

    def __init__(self, *, loading: bool = False) -> None:
        super().__init__()
        self._devices: tuple[Device, ...] = ()
        self._total = 1
        self._loading = loading
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def display(self, devices: Sequence[Device], total: int) -> None:
        if (tuple(devices), total) == (self._devices, self._total):
            return
        resized = len(devices) != len(self._devices)
        self._devices, self._total = tuple(devices), max(1, total)
        self.setAccessibleName("; ".join(self._spoken(device) for device in devices))
        if resized:
            self.updateGeometry()
        self.update()

    def _spoken(self, device: Device) -> str:
        held = words.layers(device.layers) if device.layers else "no layers"
        return f"{device.name}, {held}, {self._figure(device)}"

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return max(1, len(self._devices)) * self._lane_height(width)

    def _lane_height(self, width: int) -> int:
        return theme.px(NARROW_LANE if width < theme.px(NARROW) else LANE)

    def sizeHint(self) -> QSize:
        width = max(self.width(), theme.px(240))
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(theme.px(200), self._lane_height(self.width()) * max(1, len(self._devices)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.updateGeometry()

    def _figure(self, device: Device) -> str:
        if device.silent or device.away:
            return status_line(device).lower()
        if self._loading:
            return "ready" if device.ready else words.percent(device.progress or 0.0)
        return words.ms(device.ms) if device.ms is not None else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        high = self._lane_height(self.width())
        with painting(self) as painter:
            for i, device in enumerate(self._devices):
                box = QRectF(0, i * high, self.width(), high)
                (self._stacked if high == theme.px(NARROW_LANE) else self._abreast)(painter, box, device)

    def _abreast(self, painter: QPainter, box: QRectF, device: Device) -> None:
        name, figure = theme.px(NAME), theme.px(FIGURE)
        self._name(painter, QRectF(box.left(), box.top(), name - 12, box.height()), device)
        self._cells(painter, QRectF(name, box.top(), box.width() - name - figure, box.height()), device)
        self._write_figure(painter, QRectF(box.right() - figure, box.top(), figure, box.height()), device)

    def _stacked(self, painter: QPainter, box: QRectF, device: Device) -> None:
        line = QRectF(box.left(), box.top(), box.width(), theme.px(24))
        self._name(painter, line.adjusted(0, 0, -theme.px(FIGURE) - 8, 0), device)
        self._write_figure(painter, line, device)
        self._cells(painter, QRectF(box.left(), line.bottom(), box.width(), theme.px(16)), device)

    def _name(self, painter: QPainter, box: QRectF, device: Device) -> None:
        palette = theme.palette()
        held = f" · {words.layers(device.layers)}" if device.layers else ""
        taken = write(painter, box, device.name, font(theme.SMALL, 500), palette.ink)
        write(painter, box.adjusted(taken, 0, 0, 0), held, font(theme.SMALL), palette.muted)

    def _write_figure(self, painter: QPainter, box: QRectF, device: Device) -> None:
        palette = theme.palette()
        colour = palette.bad if device.silent or device.away else palette.muted
        if self._loading and device.ready:
            colour = palette.good
        write(painter, box, self._figure(device), font(theme.SMALL), colour, RIGHT)

    def _cells(self, painter: QPainter, box: QRectF, device: Device) -> None:
        look = theme.current()
        cells = min(self._total, MOST_CELLS)
        held = cells_held(device.layers, self._total, cells) if device.layers else range(0)
        done = round(len(held) * (1.0 if device.ready or not self._loading else device.progress or 0.0))
        wide, high = (box.width() + GAP) / cells, look.px(CELL_HIGH)
        top = box.top() + (box.height() - high) / 2
        for i in range(cells):
            cell = QRectF(box.left() + i * wide, top, wide - GAP, high)
            colour = theme.palette().line
            if i in held:
                full = i - held.start < done
                colour = look.device(device.colour) if full else theme.palette().empty
            fill(painter, cell, colour, min(3.0, cell.width() / 2))
