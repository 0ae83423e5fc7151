"""The token of a person at the hub models come from, for those that ask for one."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from app.core.secrets import LARGEST_VALUE
from app.ui import theme
from app.ui.fonts import font
from app.ui.models_view import KeepToken
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.row import row
from app.ui.widgets.text import label

ABOUT = "Some models are given only to people who accepted their terms. With your hub token they can be downloaded."


class HubToken(QWidget):
    """``wished`` gives a ``KeepToken``."""

    wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.field = QLineEdit()
        self.field.setAccessibleName("Hub token")
        self.field.setMaxLength(LARGEST_VALUE)
        self.field.setFont(font(theme.SMALL, mono=True))
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        self.field.returnPressed.connect(self._save)
        self.save = Button("Save", "", self._save)
        self.forget = Button("Forget", "", lambda: self.wished.emit(KeepToken("")))
        lines = column(self, 8)
        lines.addWidget(label("Hub token", theme.SMALL, 600, "muted"))
        lines.addWidget(label(ABOUT, theme.SMALL, 400, "muted", wrap=True))
        line = row()
        line.addWidget(self.field, 1)
        line.addWidget(self.save)
        line.addWidget(self.forget)
        lines.addLayout(line)
        self.save.setEnabled(False)

    def display(self, *, kept: bool) -> None:
        self.field.setPlaceholderText("kept; type another to replace it" if kept else "none")
        self.forget.setVisible(kept)

    def _save(self) -> None:
        text = self.field.text().strip()
        if text:
            self.field.clear()
            self.wished.emit(KeepToken(text))
