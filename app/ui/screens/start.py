"""The first screen: open a room, or join one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.room.intents import JoinRoom, OpenRoom
from app.room.state import Offer
from app.ui import theme, words
from app.ui.this_device import ThisDevice
from app.ui.widgets.button import Button
from app.ui.widgets.card import Card, column, rule
from app.ui.widgets.code_field import CodeField
from app.ui.widgets.last_room import LastRoom
from app.ui.widgets.name_field import NameField
from app.ui.widgets.nearby_rooms import NearbyRooms
from app.ui.widgets.row import row
from app.ui.widgets.stepper import Stepper
from app.ui.widgets.text import label, set_tone

if TYPE_CHECKING:
    from app.room.near import NearbyRoom

WIDEST, ABREAST = 860, 720
BAD_CODE = "A code has six letters and digits, like 4TK-G9P."


class StartScreen(QWidget):
    """``chosen`` tells name and GB when either action is taken, to be remembered."""

    intent = Signal(object)
    chosen = Signal(str, float)

    def __init__(self, device: ThisDevice, name: str, gb: float) -> None:
        super().__init__()
        self.device = device
        self.name = NameField(name)
        self.pledge = Stepper(1.0, max(1.0, device.largest_gb))
        self.pledge.set_value(gb or device.suggested_gb)
        self.code = CodeField()
        self._says = label("With the code alone, the owner presses Allow.", theme.TINY, 400, "muted", wrap=True)
        self.last = LastRoom()
        self.last.intent.connect(self.intent)
        self.nearby = NearbyRooms()
        self.nearby.knocked.connect(self._knock)
        self.open_button = Button("Open a room", "big", self._open)
        self.join_button = Button("Join", "wide", self._join)
        self.code.changed.connect(self._code_changed)
        self.code.entered.connect(self._join)
        self._build()
        self._code_changed()

    def _build(self) -> None:
        outer = QVBoxLayout(self)
        outer.setContentsMargins(theme.px(20), theme.px(24), theme.px(20), theme.px(24))
        inner = QWidget()
        inner.setMaximumWidth(theme.px(WIDEST))
        lines = column(inner, 8)
        lines.addWidget(_centred("Run one big model on all your computers", theme.DISPLAY, 600))
        lines.addWidget(_centred("Each device holds a part. Together they answer.", 16, 400, "muted"))
        lines.addSpacing(theme.px(28))
        lines.addWidget(self.last)
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._cards.setSpacing(theme.px(24))
        self._cards.addWidget(self._open_card(), 1)
        self._cards.addWidget(self._join_card(), 1)
        lines.addLayout(self._cards)
        lines.addSpacing(theme.px(24))
        lines.addWidget(_centred(_starter_line(self.device), theme.SMALL, 400, "muted"))
        outer.addStretch(1)
        outer.addLayout(_middle(inner))
        outer.addStretch(2)

    def _open_card(self) -> Card:
        card = Card(padding=theme.GUTTER, spacing=8)
        lines = card.column
        lines.addWidget(label("Open a room", theme.TITLE, 600))
        lines.addWidget(label("You get a code, a link and a QR. You decide who comes in.", tone="muted", wrap=True))
        lines.addSpacing(theme.px(12))
        lines.addWidget(rule())
        lines.addSpacing(theme.px(4))
        lines.addLayout(row(label("This computer is called"), None, self.name))
        lines.addSpacing(theme.px(4))
        lines.addWidget(rule())
        lines.addSpacing(theme.px(4))
        lines.addWidget(self._lending())
        lines.addStretch(1)
        lines.addSpacing(theme.px(16))
        lines.addWidget(self.open_button)
        return card

    def _lending(self) -> QWidget:
        """How much it lends, or why it lends nothing."""
        box = QWidget()
        device = self.device
        if not device.ready or device.holds_layers:
            said = column(spacing=2)
            said.addWidget(label("It lends"))
            said.addWidget(label(_of_gpu(device), theme.SMALL, 400, "muted", wrap=True))
            line = row()
            line.addLayout(said, 1)
            line.addWidget(self.pledge)
            box.setLayout(line)
            return box
        lines = column(box, 2)
        lines.addWidget(label("It joins only to ask", weight=500))
        lines.addWidget(label(device.problem, theme.SMALL, 400, "muted", wrap=True))
        lines.addWidget(label(device.remedy, theme.SMALL, 400, "soft", wrap=True))
        return box

    def _join_card(self) -> Card:
        card = Card(padding=theme.GUTTER, spacing=8)
        lines = card.column
        lines.addWidget(label("Join a room", theme.TITLE, 600))
        lines.addWidget(label("Type the code, or paste the invite link.", tone="muted", wrap=True))
        lines.addSpacing(theme.px(8))
        lines.addWidget(self.code)
        lines.addSpacing(theme.px(4))
        lines.addWidget(self._says)
        lines.addWidget(self.nearby)
        lines.addStretch(1)
        lines.addSpacing(theme.px(16))
        lines.addWidget(self.join_button)
        self.join_button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        return card

    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = self.width() >= theme.px(ABREAST)
        self._cards.setDirection(QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom)

    def _code_changed(self) -> None:
        self.open_button.setEnabled(self.device.ready)
        self.join_button.setEnabled(self.device.ready and self.code.complete)
        self._say("With the code alone, the owner presses Allow.", "muted")
        if "/" in self.code.text:
            self._say(
                "The link holds the room's code." if self.code.code else "That link has no room code in it.",
                "muted" if self.code.code else "bad",
            )

    def follow(self, link: str) -> None:
        """Joins by an invite the program was opened with."""
        self.code.set_text(link)
        self._join()

    def show_last(self, offer: Offer | None) -> None:
        """The room that can be gone back to."""
        self.last.display(offer, self.device.ready)

    def show_nearby(self, rooms: Sequence[NearbyRoom]) -> None:
        """The rooms that announce themselves now."""
        self.nearby.display(rooms, self.device.ready)

    def _knock(self, where: str) -> None:
        self._go(JoinRoom(where, self.name.name, self._gb()))

    def _say(self, text: str, tone: str) -> None:
        self._says.setText(text)
        set_tone(self._says, tone)

    def _gb(self) -> float:
        return self.pledge.value if self.device.holds_layers else 0.0

    def _open(self) -> None:
        self._go(OpenRoom(self.name.name, self._gb()))

    def _join(self) -> None:
        if not self.device.ready:
            return
        if not self.code.complete:
            self._say(BAD_CODE, "bad")
            return
        where = self.code.text if "/" in self.code.text else self.code.code
        self._go(JoinRoom(where, self.name.name, self._gb()))

    def _go(self, intent: OpenRoom | JoinRoom) -> None:
        self.chosen.emit(intent.name, self.pledge.value)
        self.intent.emit(intent)


def _of_gpu(device: ThisDevice) -> str:
    if not device.ready:
        return "looking at the GPU"
    return f"of {words.gb(device.gpu_gb)} on the {device.gpu}" if device.gpu_gb else f"on the {device.gpu}"


def _starter_line(device: ThisDevice) -> str:
    if not device.starter_bytes:
        return "Models download when you pick them."
    size = words.size(device.starter_bytes)
    if device.starter_ready:
        return f"A starter model ({size}) is ready. Bigger ones download when you pick them."
    return f"The starter model is {size}. Models download when you pick them."


def _centred(text: str, size: float, weight: int, tone: str = "") -> QWidget:
    made = label(text, size, weight, tone, wrap=True)
    made.setAlignment(Qt.AlignmentFlag.AlignHCenter)
    return made


def _middle(inner: QWidget) -> QBoxLayout:
    line = row()
    line.addStretch(1)
    line.addWidget(inner, 100)
    line.addStretch(1)
    return line
