"""Six slots for a room code. Takes typing, a pasted code and a pasted invite link."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from app.core.errors import RoomError
from app.room.codes import ALPHABET, CODE_LENGTH, format_code
from app.room.invite import parse_invite
from app.ui import theme
from app.ui.fonts import font
from app.ui.paint import CENTRE, fill, outline, painting, write

SLOT, HIGH, GAP = 46, 54, 8


class CodeField(QWidget):
    """``text`` is the code typed so far, or the whole link when one was pasted."""

    changed = Signal()
    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled)
        self.setCursor(Qt.CursorShape.IBeamCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Room code, six letters or digits, or an invite link")

    @property
    def code(self) -> str:
        """What the slots show."""
        if not self._is_link:
            return self.text
        try:
            return parse_invite(self.text).code
        except RoomError:
            return ""

    @property
    def complete(self) -> bool:
        return len(self.code) in (4, CODE_LENGTH)

    @property
    def _is_link(self) -> bool:
        return "/" in self.text

    def set_text(self, text: str) -> None:
        """A code or a link; anything else in it is left out."""
        self.text = text.strip() if "/" in text else _symbols(text)[:CODE_LENGTH]
        self.setAccessibleDescription(format_code(self.code))
        self.changed.emit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme.px(SLOT * 6 + GAP * 5), theme.px(HIGH))

    def minimumSizeHint(self) -> QSize:
        return QSize(theme.px(30 * 6 + GAP * 5), theme.px(HIGH))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste):
            self.set_text(QApplication.clipboard().text())
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif event.key() in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
            self.set_text("" if self._is_link else self.text[:-1])
        elif _symbols(event.text()):
            self.set_text(self.code + event.text() if self._is_link else self.text + event.text())
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.setFocus(Qt.FocusReason.MouseFocusReason)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, shown = theme.palette(), self.code
        with painting(self) as painter:
            for i, box in enumerate(self._boxes()):
                active = self.hasFocus() and i == min(len(shown), CODE_LENGTH - 1)
                if active:
                    fill(painter, box.adjusted(-2, -2, 2, 2), palette.tint, 12)
                fill(painter, box, palette.card if active else palette.page, 10)
                outline(painter, box, palette.accent if active else palette.line, 10, 1.5 if active else 1)
                if i < len(shown):
                    write(painter, box, shown[i], font(22, 500, mono=True), palette.ink, CENTRE)

    def _boxes(self) -> list[QRectF]:
        gap = theme.px(GAP)
        wide = min(theme.px(SLOT), (self.width() - 4 - 5 * gap) / 6)
        return [QRectF(2 + i * (wide + gap), 2, wide, self.height() - 4) for i in range(6)]


def _symbols(text: str) -> str:
    return "".join(c for c in text.upper() if c in ALPHABET)
