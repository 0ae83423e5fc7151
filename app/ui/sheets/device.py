"""One device's card: how it is, what it lends and holds."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.core.units import LARGEST_GB
from app.room.intents import Disconnect, HandOver, PauseLending, SetPledge
from app.room.state import Device, RoomState
from app.ui import theme, words
from app.ui.device_words import idle, kind_word, path_words, status_line
from app.ui.paint import dot, painting
from app.ui.widgets.button import Button
from app.ui.widgets.card import column, rule
from app.ui.widgets.facts import Facts
from app.ui.widgets.row import row
from app.ui.widgets.stepper import Stepper
from app.ui.widgets.switch import Switch
from app.ui.widgets.text import label, set_tone


class Dot(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._colour: int | None = None
        self.setFixedSize(theme.px(12), theme.px(12))

    def sizeHint(self) -> QSize:
        return self.size()

    def display(self, colour: int | None) -> None:
        self._colour = colour
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        middle = self.width() / 2
        with painting(self) as painter:
            dot(painter, QPointF(middle, middle), middle, theme.current().device(self._colour))


def device_facts(device: Device) -> list[tuple[str, str]]:
    found = [("Kind", kind_word(device))]
    if device.gpu:
        found.append(("GPU", device.gpu))
    if device.holds_layers:
        found.append(("Lends", words.gb(device.gb)))
    if device.layers is not None:
        found.append(("Holds", f"{words.layers(device.layers)}, {words.gb(device.held_gb)}"))
    if device.ms is not None:
        found.append(("Its part of a word", words.ms(device.ms)))
    if device.rtt_ms is not None and not device.me:
        found.append(("There and back", words.ms(device.rtt_ms)))
    if path_words(device) and not device.me:
        found.append(("Connection", path_words(device)))
    return found


def roles(device: Device) -> str:
    """ "this device, owns the room"."""
    parts = [
        "this device" if device.me else "",
        "owns the room" if device.creator else "",
        "writes the answers" if device.model_host else "",
    ]
    return ", ".join(part for part in parts if part)


class DeviceCard(QWidget):
    WIDTH = 320
    intent = Signal(object)

    def __init__(self, id: str, *, titled: bool = False) -> None:
        super().__init__()
        self.id = id
        self._dot = Dot()
        self._name = label("", theme.BODY, 600, wrap=True)
        self._status = label("", theme.SMALL, 500)
        self._roles = label("", theme.SMALL, 400, "muted", wrap=True)
        self._facts = Facts(spacing=6)
        self._why = label("", theme.SMALL, 400, "muted", wrap=True)
        self._pledge = Stepper(1.0, LARGEST_GB)
        self._pledge.changed.connect(lambda gb: self.intent.emit(SetPledge(gb)))
        self._own = QWidget()
        own = column(self._own, 8)
        own.addWidget(rule())
        self._lend = QWidget()
        self._lend.setLayout(row(label("You lend", theme.SMALL, 500), None, self._pledge))
        own.addWidget(self._lend)
        self._paused = Switch("Pause lending")
        self._paused.clicked.connect(lambda on: self.intent.emit(PauseLending(bool(on))))
        own.addLayout(row(label("Pause: I need my GPU", theme.SMALL, 500), None, self._paused))
        self._owner = QWidget()
        owners = column(self._owner, 8)
        owners.addWidget(rule())
        self._hand = Button("Leave the room to it", "", lambda: self.intent.emit(HandOver(self.id)))
        self._out = Button("Disconnect", "", lambda: self.intent.emit(Disconnect(self.id)))
        owners.addLayout(row(self._hand, None, self._out))
        lines = column(self, 8)
        if titled:
            line = row(self._dot, spacing=10)
            line.addWidget(self._name, 1)
            line.addWidget(self._status)
            lines.addLayout(line)
        else:
            lines.addLayout(row(self._dot, self._status, None, spacing=10))
        for part in (self._roles, self._facts, self._why, self._own, self._owner):
            lines.addWidget(part)

    def display(self, state: RoomState) -> None:
        device = next((each for each in state.devices if each.id == self.id), None)
        if device is None:
            self._status.setText("Gone")
            return
        self._dot.display(device.colour)
        self._name.setText(device.name)
        self._status.setText(status_line(device))
        set_tone(self._status, "bad" if device.silent or device.away else "")
        self._roles.setText(roles(device))
        self._roles.setVisible(bool(roles(device)))
        self._facts.display(device_facts(device))
        why = idle(device) if device.paused or device.out is not None else ""
        self._why.setText(why)
        self._why.setVisible(bool(why))
        self._own.setVisible(device.me and (device.holds_layers or device.paused))
        self._lend.setVisible(not device.paused)
        if device.holds_layers:
            self._pledge.set_value(device.gb)
        self._paused.setChecked(device.paused)
        self._owner.setVisible(state.i_am_creator and not device.me and not device.away)
        self._hand.setVisible(device.ours)


class DevicesSheet(QWidget):
    """Every device of the room, a card each."""

    WIDTH = 460
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._cards: dict[str, DeviceCard] = {}
        self._lines = column(self, 16)

    def display(self, state: RoomState) -> None:
        for gone in self._cards.keys() - {device.id for device in state.devices}:
            self._cards.pop(gone).deleteLater()
        for device in state.devices:
            if device.id not in self._cards:
                self._add(device.id)
        for card in self._cards.values():
            card.display(state)

    def _add(self, id: str) -> None:
        if self._cards:
            self._lines.addWidget(rule())
        card = DeviceCard(id, titled=True)
        card.intent.connect(self.intent)
        self._cards[id] = card
        self._lines.addWidget(card)
