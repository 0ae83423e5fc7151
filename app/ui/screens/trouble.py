"""Joining failed, or the room is over: what happened, and what to do."""

from __future__ import annotations

from PySide6.QtCore import Signal

from app.room.intents import BackToStart
from app.room.state import Phase, RoomState
from app.ui import theme
from app.ui.screens.centre import Centre
from app.ui.widgets.button import Button
from app.ui.widgets.mark import Mark


class TroubleScreen(Centre):
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.add(Mark(36))
        self.lines.addSpacing(theme.px(8))
        self._title = self.say("", theme.TITLE, 600)
        self._what = self.say("", theme.BODY, 400, "")
        self._remedy = self.say("", theme.BODY, 400, "muted")
        self.lines.addSpacing(theme.px(12))
        self.back = Button("Back to start", "primary", lambda: self.intent.emit(BackToStart()))
        self.add(self.back)

    def display(self, state: RoomState) -> None:
        over = state.phase is Phase.OVER
        self._title.setText("This room has ended" if over else "That did not work")
        self._what.setText(state.trouble)
        self._what.setVisible(bool(state.trouble))
        self._remedy.setText(state.remedy)
        self._remedy.setVisible(bool(state.remedy))
