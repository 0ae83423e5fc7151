"""How another device gets in: a QR to scan, the code, the link."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget

from app.room.codes import format_code
from app.room.state import RoomState
from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.card import column
from app.ui.widgets.copy_button import CopyButton
from app.ui.widgets.invite_box import COPY
from app.ui.widgets.qr import Qr
from app.ui.widgets.row import row
from app.ui.widgets.text import code_label, label


class InviteSheet(QWidget):
    WIDTH = 440

    def __init__(self) -> None:
        super().__init__()
        self._qr = Qr(theme.px(216))
        self._code = code_label("", theme.DISPLAY, 500)
        self._code.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._link = QLineEdit()
        self._link.setReadOnly(True)
        self._link.setFont(font(theme.TINY, mono=True))
        self._link.setAccessibleName("Invite link")
        self._copy = CopyButton(COPY, "primary")
        self._says = label("", theme.SMALL, 400, "muted", wrap=True)
        self._says.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        lines = column(self, 12)
        lines.addWidget(self._qr, 0, Qt.AlignmentFlag.AlignHCenter)
        lines.addWidget(self._code, 0, Qt.AlignmentFlag.AlignHCenter)
        lines.addWidget(self._says)
        line = row(spacing=8)
        line.addWidget(self._link, 1)
        line.addWidget(self._copy)
        lines.addLayout(line)

    def display(self, state: RoomState) -> None:
        invite = state.invite
        code = format_code(invite.code if invite is not None else state.code)
        link = invite.link if invite is not None else ""
        self._code.setText(code)
        self._code.setAccessibleName(f"Room code {' '.join(code)}")
        self._qr.set_text(link or code)
        self._link.setText(link or code)
        self._link.setCursorPosition(0)
        self._copy.copies = link or code
        self._says.setText(self._words(state))

    def _words(self, state: RoomState) -> str:
        if state.invite is not None and state.invite.has_key:
            return "Whoever has the link gets in. With the code alone, you press Allow."
        return "Whoever has the code may knock. The room's owner presses Allow."
