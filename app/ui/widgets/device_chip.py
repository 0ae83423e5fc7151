"""A device in the header: colour, name, what it lends or how far it is."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from app.room.state import Device
from app.ui import theme
from app.ui.device_words import chip_note, status_line
from app.ui.fonts import font
from app.ui.paint import dot, fill, outline, painting, width_of, write

PAD, DOT, GAP, LONGEST = 12, 8, 8, 240


class DeviceChip(QAbstractButton):
    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._describe()

    def display(self, device: Device) -> None:
        if device != self.device:
            self.device = device
            self._describe()
            self.updateGeometry()
            self.update()

    def _describe(self) -> None:
        spoken = f"{self.device.name}, {chip_note(self.device)}, {status_line(self.device)}"
        self.setAccessibleName(spoken)
        self.setToolTip(self.device.name)

    def sizeHint(self) -> QSize:
        name = width_of(self.device.name, font(theme.BODY, 500))
        note = width_of(chip_note(self.device), font(theme.TINY, 500))
        width = theme.px(2 * PAD + DOT + 2 * GAP) + name + note + 2
        return QSize(min(int(width), theme.px(LONGEST)), theme.px(theme.CONTROL))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        look, palette, box = theme.current(), theme.palette(), QRectF(self.rect())
        lost = self.device.silent or self.device.away
        with painting(self) as painter:
            fill(painter, box, palette.code if self.underMouse() else palette.card, box.height() / 2)
            outline(painter, box, palette.empty if self.device.me else palette.line, box.height() / 2 - 0.5)
            x = look.px(PAD) + look.px(DOT) / 2
            dot(painter, QPointF(x, box.center().y()), look.px(DOT) / 2, look.device(self.device.colour))
            if lost:
                dot(painter, QPointF(x, box.center().y()), look.px(DOT) / 4, palette.card)
            note, small = chip_note(self.device), font(theme.TINY, 500)
            left = x + look.px(DOT) / 2 + look.px(GAP)
            right = box.right() - look.px(PAD)
            room = right - left - width_of(note, small) - look.px(GAP)
            taken = write(painter, QRectF(left, 0, room, box.height()), self.device.name, font(weight=500), palette.ink)
            note_box = QRectF(left + taken + look.px(GAP), 0, right - left - taken, box.height())
            write(painter, note_box, note, small, palette.bad if lost else palette.muted)
