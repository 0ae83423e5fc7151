"""The models while one runs: which runs, which others the room could hold."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.room.intents import StopStart
from app.room.state import RoomState
from app.ui import theme, words
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.facts import Facts
from app.ui.widgets.row import row
from app.ui.widgets.text import label


class ModelsSheet(QWidget):
    WIDTH = 460
    intent = Signal(object)
    done = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._running = label("", weight=500, wrap=True)
        self._facts = Facts(spacing=10)
        self._note = label("", theme.SMALL, 400, "muted", wrap=True)
        self._down = Button("Choose another model", "", self._take_down)
        lines = column(self, 14)
        lines.addWidget(self._running)
        lines.addWidget(self._facts)
        lines.addWidget(self._note)
        lines.addLayout(row(None, self._down))

    def display(self, state: RoomState) -> None:
        self._running.setText(f"{state.label} is running." if state.label else "No model is running.")
        others = [model for model in state.rows if model.key != state.model]
        self._facts.display([(f"{m.label} · {words.gb(m.need_gb)}", m.sentence) for m in others])
        self._down.setVisible(state.i_am_creator and bool(state.model))
        owner = "The running one is taken down first, for everybody."
        self._note.setText(owner if state.i_am_creator else "The room's owner can choose another one.")

    def _take_down(self) -> None:
        self.intent.emit(StopStart())
        self.done.emit()
