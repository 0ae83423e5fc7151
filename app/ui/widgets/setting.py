"""One line of settings: a name, a sentence about the present choice, and the control."""

from __future__ import annotations

from PySide6.QtWidgets import QBoxLayout, QWidget

from app.ui import theme
from app.ui.widgets.card import column
from app.ui.widgets.switch import Switch
from app.ui.widgets.text import label


class Setting(QWidget):
    """A name, one sentence about the present choice, and the control; below each other where it is narrow."""

    def __init__(self, name: str, control: QWidget) -> None:
        super().__init__()
        self._help = label("", theme.SMALL, 400, "muted", wrap=True)
        said = column(spacing=2)
        said.addWidget(label(name, weight=500, wrap=True))
        said.addWidget(self._help)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(theme.px(12))
        self._line.addLayout(said, 1)
        self._line.addWidget(control)
        self._small = isinstance(control, Switch)

    def say(self, text: str) -> None:
        self._help.setText(text)
        self._help.setVisible(bool(text))

    def stack(self, narrow: bool) -> None:
        below = narrow and not self._small
        self._line.setDirection(QBoxLayout.Direction.TopToBottom if below else QBoxLayout.Direction.LeftToRight)
