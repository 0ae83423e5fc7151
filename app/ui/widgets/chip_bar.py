"""The devices in the header, as many as there is room for; the rest behind one chip."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.room.state import Device
from app.ui import theme, words
from app.ui.widgets.button import Button
from app.ui.widgets.device_chip import DeviceChip

GAP = 10


class ChipBar(QWidget):
    """``picked`` tells a device's id, ``all_wanted`` that the whole list is asked for."""

    picked = Signal(str)
    all_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Devices in the room")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._chips: dict[str, DeviceChip] = {}
        self._devices: tuple[Device, ...] = ()
        self._more = Button("", on=self.all_wanted.emit)
        self._more.setParent(self)

    def display(self, devices: Sequence[Device]) -> None:
        if tuple(devices) == self._devices:
            return
        self._devices = tuple(devices)
        for gone in self._chips.keys() - {device.id for device in devices}:
            self._chips.pop(gone).deleteLater()
        self._chips = {device.id: self._chip(device) for device in devices}
        self._place()

    def _chip(self, device: Device) -> DeviceChip:
        known = self._chips.get(device.id)
        if known is not None:
            known.display(device)
            return known
        made = DeviceChip(device)
        made.setParent(self)
        made.clicked.connect(lambda _checked=False, id=device.id: self.picked.emit(id))
        return made

    def sizeHint(self) -> QSize:
        return QSize(theme.px(100), theme.px(theme.CONTROL))

    def minimumSizeHint(self) -> QSize:
        return QSize(theme.px(60), theme.px(theme.CONTROL))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place()

    def _place(self) -> None:
        chips = list(self._chips.values())
        shown = self._how_many(chips)
        x, gap = 0, theme.px(GAP)
        for i, chip in enumerate(chips):
            chip.setVisible(i < shown)
            if i < shown:
                chip.setGeometry(x, 0, chip.sizeHint().width(), chip.sizeHint().height())
                x += chip.width() + gap
        self._place_more(len(chips) - shown, shown == 0, x)

    def _how_many(self, chips: Sequence[DeviceChip]) -> int:
        gap, room = theme.px(GAP), self.width()
        widths = [chip.sizeHint().width() + gap for chip in chips]
        if sum(widths) - gap <= room:
            return len(chips)
        more = theme.px(72) + gap
        count = 0
        while count < len(chips) and sum(widths[: count + 1]) + more <= room + gap:
            count += 1
        return count

    def _place_more(self, hidden: int, all_hidden: bool, x: int) -> None:
        self._more.setVisible(hidden > 0)
        self._more.setText(words.count(hidden, "device") if all_hidden else f"+{hidden}")
        self._more.setAccessibleName(f"{hidden} more devices")
        self._more.setGeometry(x, 0, self._more.sizeHint().width(), theme.px(theme.CONTROL))
