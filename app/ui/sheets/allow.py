"""Somebody is at the door: who, and the six digits that must be equal on both screens."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.room.intents import Allow, Deny
from app.room.state import WaitingRequest
from app.ui import theme, words
from app.ui.screens.lobby import grouped
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.mark import Mark
from app.ui.widgets.row import row
from app.ui.widgets.text import code_label, label


def about(request: WaitingRequest) -> str:
    """ "computer · lends 10 GB"."""
    kind = request.kind.value
    lends = "only asks" if request.chat_only or not request.gb else f"lends {words.gb(request.gb)}"
    return f"{kind[:1].upper()}{kind[1:]} · {lends}"


class AllowDialog(QWidget):
    WIDTH = 420
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.request: WaitingRequest | None = None
        self._title = label("", theme.HEAD, 600, wrap=True)
        self._about = label("", tone="muted", wrap=True)
        self._digits = code_label("", 30, 500)
        self._explain = label("", theme.SMALL, 400, "muted", wrap=True)
        self._more = label("", theme.SMALL, 400, "muted", wrap=True)
        self.deny = Button("Deny", "", self._deny)
        self.allow = Button("Allow", "primary", self._allow)
        lines = column(self, 6)
        head = row(Mark(22), spacing=14)
        head.addWidget(self._title, 1)
        lines.addLayout(head)
        lines.addWidget(self._about)
        lines.addSpacing(theme.px(4))
        lines.addWidget(self._digits)
        lines.addWidget(self._explain)
        lines.addSpacing(theme.px(10))
        foot = row()
        foot.addWidget(self._more, 1)
        foot.addWidget(self.deny)
        foot.addWidget(self.allow)
        lines.addLayout(foot)

    def display(self, waiting: tuple[WaitingRequest, ...]) -> None:
        """The first is asked about, the others counted."""
        request = waiting[0]
        self.request = request
        self._title.setText(f"{request.name} wants to join")
        self._about.setText(about(request))
        self._digits.setText(grouped(request.digits))
        self._digits.setAccessibleName(f"Digits to compare: {' '.join(request.digits)}")
        self._digits.setVisible(bool(request.digits))
        shown = f"{request.name} shows the same six digits. If they differ, deny."
        self._explain.setText(shown if request.digits else "This device cannot show digits. Ask who it is.")
        self._more.setText(f"{len(waiting) - 1} more waiting" if len(waiting) > 1 else "")

    def _allow(self) -> None:
        if self.request is not None:
            self.intent.emit(Allow(self.request.id))

    def _deny(self) -> None:
        if self.request is not None:
            self.intent.emit(Deny(self.request.id))
