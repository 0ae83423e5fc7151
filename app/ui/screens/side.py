"""The left column: the room's conversation, Models, Serve API, Settings."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.room.intents import NewChat
from app.room.state import RoomState
from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.button import Button
from app.ui.widgets.text import label

WIDTH = 232
EMPTY = "Nothing asked yet"


class SideColumn(QWidget):
    """``done`` is emitted after any choice, so that a sheet around the column can close."""

    intent = Signal(object)
    models_wanted = Signal()
    api_wanted = Signal()
    settings_wanted = Signal()
    leave_wanted = Signal()
    done = Signal()

    def __init__(self, *, in_sheet: bool = False) -> None:
        super().__init__()
        self.setObjectName("" if in_sheet else "column")
        self._title = ""
        self.new_chat = Button("New chat", "", self._new)
        self._heading = label("This room", theme.SMALL, 600, "muted")
        self._heading.setIndent(10)
        self._conversation = Button(EMPTY, "item")
        self._conversation.setCheckable(True)
        self._conversation.setChecked(True)
        self._conversation.clicked.connect(self._chosen)
        lines = QVBoxLayout(self)
        side = 0 if in_sheet else theme.px(12)
        lines.setContentsMargins(side, 0 if in_sheet else theme.px(16), side, side)
        lines.setSpacing(theme.px(4))
        lines.addWidget(self.new_chat)
        lines.addSpacing(theme.px(12))
        lines.addWidget(self._heading)
        lines.addWidget(self._conversation)
        lines.addStretch(1)
        pages = (("Models", self.models_wanted), ("Serve API", self.api_wanted), ("Settings", self.settings_wanted))
        for text, wanted in pages:
            lines.addWidget(Button(text, "item", lambda wanted=wanted: self._tell(wanted)))
        if in_sheet:
            lines.addWidget(Button("Leave the room", "item", lambda: self._tell(self.leave_wanted)))

    def _tell(self, wanted: SignalInstance) -> None:
        self.done.emit()
        wanted.emit()

    def _new(self) -> None:
        self.intent.emit(NewChat())
        self.done.emit()

    def _chosen(self) -> None:
        self._conversation.setChecked(True)
        self.done.emit()

    def display(self, state: RoomState) -> None:
        first = next((item.question for item in state.transcript if not item.hidden), "")
        talking = state.live is not None and not state.live.client
        self.new_chat.setEnabled(state.phase.has_model and bool(state.transcript) and not talking)
        if first != self._title:
            self._title = first
            self._show_title()

    def _show_title(self) -> None:
        room = theme.px(WIDTH) - theme.px(48)
        text = " ".join(self._title[:200].split())
        shown = QFontMetrics(font(weight=500)).elidedText(text, Qt.TextElideMode.ElideRight, room)
        self._conversation.setText(shown.replace("&", "&&") or EMPTY)
        self._conversation.setToolTip(f"<p>{escape(text)}</p>")
