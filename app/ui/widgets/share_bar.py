"""Who holds how much of the model, as one bar: the folded layer band."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.room.state import Device
from app.ui import theme
from app.ui.paint import fill, painting

HIGH, LEAST, GAP = 8, 6, 2


class ShareBar(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._devices: tuple[Device, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def display(self, devices: Sequence[Device]) -> None:
        holders = tuple(device for device in devices if device.layers)
        if holders != self._devices:
            self._devices = holders
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme.px(160), theme.px(HIGH))

    def paintEvent(self, event: QPaintEvent) -> None:
        counts = [last - first + 1 for device in self._devices if device.layers for first, last in [device.layers]]
        room = self.width() - GAP * max(0, len(counts) - 1) - LEAST * len(counts)
        x = 0.0
        with painting(self) as painter:
            for device, held in zip(self._devices, counts, strict=True):
                wide = LEAST + room * held / sum(counts)
                box = QRectF(x, 0, wide, self.height())
                fill(painter, box, theme.current().device(device.colour), self.height() / 2)
                x += wide + GAP
