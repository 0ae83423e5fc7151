"""On the way into a room, or back into it."""

from __future__ import annotations

from PySide6.QtCore import Signal

from app.room.codes import format_code
from app.room.intents import Leave
from app.room.state import Phase, RoomState
from app.ui import theme
from app.ui.screens.centre import Centre
from app.ui.widgets.button import Button
from app.ui.widgets.mark import Mark


class ConnectingScreen(Centre):
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.add(Mark(48, moving=True))
        self.lines.addSpacing(theme.px(12))
        self._title = self.say("", theme.TITLE, 600)
        self._status = self.say("", theme.BODY, 400, "muted")
        self.lines.addSpacing(theme.px(12))
        self.cancel = Button("Cancel", "", lambda: self.intent.emit(Leave()))
        self.add(self.cancel)

    def display(self, state: RoomState) -> None:
        back = state.phase is Phase.RECONNECTING
        self.cancel.setText("Leave" if back else "Cancel")
        if back:
            self._title.setText("Connection to the room's owner lost")
            self._status.setText("This device keeps knocking for a minute. Nothing said is lost.")
            return
        self._title.setText(f"Joining room {format_code(state.code)}" if state.code else "Opening a room")
        self._status.setText(f"{state.status_line}…" if state.status_line else "One moment…")
