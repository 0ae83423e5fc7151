"""Found the room; its owner still has to press Allow."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal

from app.room.codes import format_code
from app.room.intents import Leave
from app.room.state import RoomState
from app.ui import theme
from app.ui.screens.centre import Centre
from app.ui.widgets.button import Button
from app.ui.widgets.mark import Mark
from app.ui.widgets.text import code_label


def grouped(digits: str) -> str:
    """Six digits as two groups of three."""
    return f"{digits[:3]} {digits[3:]}"


class LobbyScreen(Centre):
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.add(Mark(36, moving=True))
        self.lines.addSpacing(theme.px(8))
        self._title = self.say("Waiting to be let in", theme.TITLE, 600)
        self._room = self.say("", theme.BODY, 400, "muted")
        self.lines.addSpacing(theme.px(8))
        self.digits = code_label("", theme.DISPLAY, 500)
        self.digits.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.digits.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.lines.addWidget(self.digits)
        self._explain = self.say("", theme.SMALL, 400, "muted")
        self.lines.addSpacing(theme.px(8))
        self.add(Button("Cancel", "", lambda: self.intent.emit(Leave())))

    def display(self, state: RoomState) -> None:
        self._room.setText(f"The owner of room {format_code(state.code)} has to press Allow.")
        self.digits.setText(grouped(state.digits))
        self.digits.setVisible(bool(state.digits))
        self.digits.setAccessibleName(f"Digits to compare: {' '.join(state.digits)}")
        self._explain.setText("The owner sees the same six digits. If they differ, somebody is in between: cancel.")
        self._explain.setVisible(bool(state.digits))
