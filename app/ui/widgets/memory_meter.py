"""The room's memory: one coloured segment a device, with a tick where the chosen model starts to fit."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.room.state import Device
from app.ui import theme, words
from app.ui.paint import fill, painting

HIGH, TICK = 12, 4


class MemoryMeter(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._devices: tuple[Device, ...] = ()
        self._need = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def display(self, devices: Sequence[Device], need_gb: float) -> None:
        self._devices, self._need = tuple(devices), need_gb
        parts = [f"{device.name} {words.gb(device.gb)}" for device in devices]
        self.setAccessibleName(f"Memory lent: {words.names(parts)}. The chosen model needs {words.gb(need_gb)}.")
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme.px(200), theme.px(HIGH + TICK))

    def paintEvent(self, event: QPaintEvent) -> None:
        look, palette = theme.current(), theme.palette()
        box = QRectF(0, 0, self.width(), look.px(HIGH))
        lent = sum(device.gb for device in self._devices)
        whole = max(lent, self._need, 1e-9)
        with painting(self) as painter:
            clip = QPainterPath()
            clip.addRoundedRect(box, box.height() / 2, box.height() / 2)
            painter.save()
            painter.setClipPath(clip)
            painter.fillRect(box, palette.line)
            x = 0.0
            for device in self._devices:
                wide = box.width() * device.gb / whole
                painter.fillRect(QRectF(x, 0, wide, box.height()), look.device(device.colour))
                x += wide
            painter.restore()
            if self._need:
                at = min(box.width() * self._need / whole, box.width() - 1)
                fill(painter, QRectF(at - 1, 0, 2, look.px(HIGH + TICK)), palette.ink, 1)
