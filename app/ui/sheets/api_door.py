"""The API's port and key."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QRegularExpression, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import QLineEdit, QWidget

from app.core.ports import HIGHEST_PORT
from app.core.secrets import LARGEST_VALUE
from app.ui import theme
from app.ui.api_view import ApiWish
from app.ui.fonts import font
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.row import row
from app.ui.widgets.setting import Setting

DIGITS = r"\d{0,5}"
KEY_LETTERS = r"[A-Za-z0-9._~+/=-]*"
"""What fits unquoted into a header and into every program's settings."""


class ApiDoor(QWidget):
    """``wished`` gives an ``ApiWish`` once a field is left or Enter is pressed in it."""

    wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._wish = ApiWish()
        self.port = _field("8080", "Port", DIGITS, 96)
        self.port.editingFinished.connect(self._port_typed)
        self.key = _field("none", "Key", KEY_LETTERS, 180)
        self.key.setMaxLength(LARGEST_VALUE)
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.editingFinished.connect(self._key_typed)
        self.show_key = Button("Show", "small", self._turn_key)
        self.show_key.keep_width_for("Show", "Hide")
        key = QWidget()
        key.setLayout(row(self.key, self.show_key, None))
        self._settings = (Setting("Port", self.port), Setting("Key", key))
        self._settings[0].say("0 takes any that is free.")
        lines = column(self, 14)
        for setting in self._settings:
            lines.addWidget(setting)

    def display(self, wish: ApiWish) -> None:
        """What is being typed stays."""
        self._wish = wish
        for field, text in ((self.port, str(wish.port)), (self.key, wish.key)):
            if not field.isModified():
                field.setText(text)
        self._settings[1].say("Programs have to send it." if wish.key else "None: any key works.")

    def stack(self, narrow: bool) -> None:
        for setting in self._settings:
            setting.stack(narrow)

    def _port_typed(self) -> None:
        text = self.port.text()
        self.port.setModified(False)
        if text and int(text) <= HIGHEST_PORT:
            self._wish_for(replace(self._wish, port=int(text)))
        self.display(self._wish)

    def _key_typed(self) -> None:
        self.key.setModified(False)
        self._wish_for(replace(self._wish, key=self.key.text()))

    def _wish_for(self, wish: ApiWish) -> None:
        if wish != self._wish:
            self._wish = wish
            self.wished.emit(wish)

    def _turn_key(self) -> None:
        hidden = self.key.echoMode() is QLineEdit.EchoMode.Password
        self.key.setEchoMode(QLineEdit.EchoMode.Normal if hidden else QLineEdit.EchoMode.Password)
        self.show_key.setText("Hide" if hidden else "Show")


def _field(hint: str, name: str, letters: str, width: int) -> QLineEdit:
    made = QLineEdit()
    made.setPlaceholderText(hint)
    made.setAccessibleName(name)
    made.setFont(font(theme.SMALL, mono=True))
    made.setFixedWidth(theme.px(width))
    made.setValidator(QRegularExpressionValidator(QRegularExpression(letters), made))
    return made
