"""How another device gets in, small: QR, code, link."""

from __future__ import annotations

from PySide6.QtCore import Signal

from app.room.codes import format_code
from app.room.state import Invite
from app.ui import theme
from app.ui.widgets.card import Card, column
from app.ui.widgets.copy_button import CopyButton
from app.ui.widgets.qr import Qr
from app.ui.widgets.row import row
from app.ui.widgets.text import code_label, label

COPY = "Copy link"


class InviteBox(Card):
    opened = Signal()

    def __init__(self) -> None:
        super().__init__(padding=18, spacing=10)
        self.setAccessibleName("Bring another device")
        self._qr = Qr(theme.px(112))
        self._code = code_label("", theme.HEAD, 500)
        self._copy = CopyButton(COPY)
        said = column(spacing=6)
        said.addWidget(self._code)
        said.addWidget(label("Scan with a phone, or send the link.", theme.SMALL, 400, "muted", wrap=True))
        said.addStretch(1)
        said.addLayout(row(self._copy, None))
        line = row(self._qr, spacing=14)
        line.addLayout(said, 1)
        self.column.addWidget(label("Bring another device", theme.BODY, 600))
        self.column.addLayout(line)

    def display(self, invite: Invite | None) -> None:
        self.setVisible(invite is not None)
        if invite is not None:
            self._code.setText(format_code(invite.code))
            self._qr.set_text(invite.link or invite.code)
            self._copy.copies = invite.link or format_code(invite.code)
