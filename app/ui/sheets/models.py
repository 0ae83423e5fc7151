"""The models page: which runs, which are on this computer, which can be fetched."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.room.intents import StopStart
from app.room.state import RoomState
from app.ui import model_words, theme
from app.ui.models_view import LookAgain, ModelLine, ModelsView
from app.ui.sheets.hub_token import HubToken
from app.ui.widgets.button import Button
from app.ui.widgets.card import column, rule
from app.ui.widgets.mark import Mark
from app.ui.widgets.model_line import ModelLineView
from app.ui.widgets.row import row
from app.ui.widgets.text import label

HINT = "Or drop a .gguf file on this window."
LOOKING = "Looking for models on this computer"


class Running(QWidget):
    """The model of the room, and the owner's way to another one."""

    intent = Signal(object)
    done = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._running = label("", weight=500, wrap=True)
        self._note = label("", theme.SMALL, 400, "muted", wrap=True)
        self._down = Button("Choose another model", "", self._take_down)
        lines = column(self, 8)
        lines.addWidget(self._running)
        lines.addWidget(self._note)
        lines.addLayout(row(self._down, None))
        lines.addWidget(rule())

    def display(self, state: RoomState) -> None:
        self.setVisible(state.phase.in_room and bool(state.model))
        self._running.setText(f"{state.label} is running.")
        self._down.setVisible(state.i_am_creator)
        owner = "To choose another one, it is taken down first, for everybody."
        self._note.setText(owner if state.i_am_creator else "The room's owner can choose another one.")

    def _take_down(self) -> None:
        self.intent.emit(StopStart())
        self.done.emit()


class Shelved(QWidget):
    """Models under a heading."""

    wished = Signal(object)

    def __init__(self, heading: str) -> None:
        super().__init__()
        self.views: dict[str, ModelLineView] = {}
        self._lines: QVBoxLayout = column(self, 8)
        self._lines.addWidget(label(heading, theme.SMALL, 600, "muted"))

    def display(self, lines: Sequence[ModelLine], state: RoomState) -> None:
        self.setVisible(bool(lines))
        if [line.key for line in lines] != list(self.views):
            self._rebuild(lines)
        found = {row.key: row for row in state.rows}
        for line in lines:
            runs = state.phase.in_room and state.model == line.key
            self.views[line.key].display(line, found.get(line.key), runs=runs)

    def _rebuild(self, lines: Sequence[ModelLine]) -> None:
        while self._lines.count() > 1 and (item := self._lines.takeAt(1)) is not None:
            old = item.widget()
            if old is not None:
                old.hide()
                old.deleteLater()
        self.views = {}
        for line in lines:
            self.views[line.key] = view = ModelLineView(line)
            view.wished.connect(self.wished)
            self._lines.addWidget(rule())
            self._lines.addWidget(view)


class ModelsSheet(QWidget):
    """``wished`` gives a ``ModelWish``; ``file_wanted`` asks for a file to be chosen."""

    WIDTH = 680
    intent = Signal(object)
    wished = Signal(object)
    file_wanted = Signal()
    done = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._running = Running()
        self._running.intent.connect(self.intent)
        self._running.done.connect(self.done)
        self.here, self.there = Shelved("On this computer"), Shelved("To download")
        self._looking = QWidget()
        self._looking.setLayout(row(Mark(20, moving=True), label(LOOKING, tone="muted"), None, spacing=12))
        self._trouble = label("", theme.SMALL, 400, "bad", wrap=True)
        self._again = Button("Look again", "small", lambda: self.wished.emit(LookAgain()))
        self._said = label("", theme.SMALL, 500, "good", wrap=True)
        self._disk = label("", theme.SMALL, 400, "muted", wrap=True)
        self._token = HubToken()
        for part in (self.here, self.there, self._token):
            part.wished.connect(self.wished)
        self._build()

    def _build(self) -> None:
        lines = column(self, 14)
        lines.addWidget(self._running)
        opener = row(Button("Open a file…", "", self.file_wanted.emit), spacing=12)
        opener.addWidget(label(HINT, theme.SMALL, 400, "muted", wrap=True), 1)
        lines.addLayout(opener)
        for part in (self._said, self._trouble, self.here, self._looking, self.there):
            lines.addWidget(part)
        foot = row()
        foot.addWidget(self._disk, 1)
        foot.addWidget(self._again)
        lines.addLayout(foot)
        lines.addWidget(rule())
        lines.addWidget(self._token)

    def display(self, view: ModelsView, state: RoomState) -> None:
        self._running.display(state)
        here = [line for line in view.lines if line.here or line.job is not None]
        self.here.display(here, state)
        self.there.display([line for line in view.lines if line not in here], state)
        self._looking.setVisible(view.looking)
        self._again.setEnabled(not view.looking)
        self._disk.setText(model_words.disk(view.taken, view.free))
        for shown, text in ((self._said, view.said), (self._trouble, f"{view.trouble} {view.remedy}".strip())):
            shown.setText(text)
            shown.setVisible(bool(text))
        self._token.display(kept=view.token_kept)
