"""The room this device was in a while ago, to go back to or to forget."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout

from app.room.codes import format_code
from app.room.intents import ForgetRoom, Reopen
from app.room.state import Offer
from app.ui import theme
from app.ui.widgets.button import Button
from app.ui.widgets.card import Card, column
from app.ui.widgets.row import row
from app.ui.widgets.text import label

ABREAST = 520


class LastRoom(Card):
    """Takes no place while there is none."""

    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__(padding=16, spacing=8)
        self.offer: Offer | None = None
        self._title = label("", weight=600, wrap=True)
        self._note = label("", theme.SMALL, 400, "muted", wrap=True)
        self.back = Button("", "strong", lambda: self.intent.emit(Reopen()))
        self.forget = Button("Forget it", "quiet", lambda: self.intent.emit(ForgetRoom()))
        said = column(spacing=2)
        said.addWidget(self._title)
        said.addWidget(self._note)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._line.setSpacing(theme.px(12))
        self._line.addLayout(said, 1)
        self._line.addLayout(row(self.back, self.forget, spacing=8))
        self.column.addLayout(self._line)
        self.hide()

    def display(self, offer: Offer | None, enabled: bool) -> None:
        self.offer = offer
        if offer is not None:
            code = format_code(offer.code)
            self._title.setText(f"Your room {code} was open here" if offer.owner else f"You were in room {code}")
            self._note.setText(_note(offer))
            self.back.setText("Open it again" if offer.owner else f"Go back to {code}")
            self.back.setAccessibleName(f"Open room {code} again" if offer.owner else f"Go back to room {code}")
            self.forget.setAccessibleName(f"Forget room {code}")
        self.back.setEnabled(enabled)
        self.setVisible(offer is not None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        directions = QBoxLayout.Direction
        abreast = self.width() >= theme.px(ABREAST)
        self._line.setDirection(directions.LeftToRight if abreast else directions.TopToBottom)


def _note(offer: Offer) -> str:
    if offer.owner:
        return "It comes back with its code, its conversation and the devices that were let in."
    return "You were let in before, so nobody has to press Allow."
