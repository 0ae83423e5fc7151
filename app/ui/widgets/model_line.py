"""One model of the models page: what it is, how much of it is here, and what can be done with it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QWidget

from app.room.state import ModelRow
from app.ui import model_words, theme, words
from app.ui.models_view import Fetch, ModelLine, Remove, StopFetch
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.pill import Pill
from app.ui.widgets.progress import ProgressBar
from app.ui.widgets.row import row
from app.ui.widgets.text import label
from app.ui.widgets.twice_button import TwiceButton

NARROW = 500


def show_in_folder(path: Path) -> None:
    """Opens the file's folder in the system's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))


class ModelLineView(QWidget):
    """``wished`` gives a ``ModelWish``. A model that runs here cannot be removed."""

    wished = Signal(object)

    def __init__(self, line: ModelLine) -> None:
        super().__init__()
        self.line = line
        key = line.key
        self._name = label(line.label, weight=600, wrap=True)
        self._pill = Pill()
        self._facts = label("", theme.SMALL, 400, "muted", wrap=True)
        self._bar = ProgressBar()
        self._progress = label("", theme.SMALL, 500, wrap=True)
        self._trouble = label("", theme.SMALL, 400, "bad", wrap=True)
        self.fetch = Button("Download", "small", lambda: self.wished.emit(Fetch(key)))
        self.stop = Button("Stop", "small", lambda: self.wished.emit(StopFetch(key)))
        self.folder = Button("Show", "small", self._show_in_folder)
        self.folder.setToolTip("Show the file in its folder")
        if line.own:
            self.remove = TwiceButton("Remove from list", "Remove? The file stays")
        else:
            self.remove = TwiceButton("Delete", f"Free {words.size(line.here)}?")
        self.remove.agreed.connect(lambda: self.wished.emit(Remove(key)))
        for button in (self.fetch, self.stop, self.folder, self.remove):
            button.setAccessibleName(f"{button.text()}: {line.label}")
        self._build()

    def _build(self) -> None:
        said = column(spacing=4)
        name = row(spacing=10)
        name.addWidget(self._name, 1)
        name.addWidget(self._pill)
        for part in (self._facts, self._bar, self._progress, self._trouble):
            part.setVisible(False)
        said.addLayout(name)
        said.addWidget(self._facts)
        said.addWidget(self._bar)
        said.addWidget(self._progress)
        said.addWidget(self._trouble)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(0, theme.px(4), 0, theme.px(4))
        self._line.setSpacing(theme.px(12))
        self._line.addLayout(said, 1)
        self._line.addLayout(row(self.fetch, self.stop, self.folder, self.remove, None, spacing=6))

    def display(self, line: ModelLine, found: ModelRow | None, *, runs: bool) -> None:
        """``found`` is the model's row in the room, where it has one."""
        self.line = line
        here = model_words.presence(line) if line.job is None else ""
        self._pill.display(here)
        self._pill.setVisible(bool(here))
        _tell(self._facts, model_words.facts(line, found))
        _tell(self._progress, model_words.progress(line.job) if line.job else "")
        _tell(self._trouble, line.trouble)
        self._bar.setVisible(line.job is not None and line.job.total > 0)
        self._bar.display(line.job.share if line.job else line.share)
        self._offer(line, runs=runs)

    def _offer(self, line: ModelLine, *, runs: bool) -> None:
        self.fetch.setVisible(not line.whole and line.job is None and not line.own)
        self.fetch.setText("Go on" if line.here else "Download")
        self.stop.setVisible(line.job is not None)
        self.folder.setVisible(line.path is not None)
        self.remove.setVisible(line.here > 0 and line.job is None and not line.foreign)
        self.remove.setEnabled(not runs)
        self.remove.setToolTip("It runs just now." if runs else "")

    def _show_in_folder(self) -> None:
        if self.line.path is not None:
            show_in_folder(self.line.path)

    def resizeEvent(self, event: QResizeEvent) -> None:
        below = self.width() < theme.px(NARROW)
        directions = QBoxLayout.Direction
        self._line.setDirection(directions.TopToBottom if below else directions.LeftToRight)


def _tell(shown: QLabel, text: str) -> None:
    shown.setText(text)
    shown.setVisible(bool(text))
