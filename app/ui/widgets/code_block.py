"""Code in an answer: its language, a copy button, colours once it is complete."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor, QFontMetricsF, QTextCharFormat, QTextCursor, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit

from app.ui import theme
from app.ui.fonts import font
from app.ui.highlight import coloured_spans, prepared
from app.ui.markdown import Block
from app.ui.widgets.card import column
from app.ui.widgets.copy_button import CopyButton
from app.ui.widgets.row import row
from app.ui.widgets.slices import Slices
from app.ui.widgets.text import label

LINE_HEIGHT = 1.2
ASK_AGAIN_MS = 30


class _Code(QTextEdit):
    """As high as its lines; wide lines scroll sideways, the wheel stays with the conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setFont(font(theme.TINY, mono=True))
        self.setWordWrapMode(QTextOption.WrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.setAccessibleName("Code")

    def wheelEvent(self, event: QWheelEvent) -> None:
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            super().wheelEvent(event)
        else:
            event.ignore()

    def fit(self) -> None:
        lines = self.document().blockCount()
        line = QFontMetricsF(self.font()).lineSpacing() * LINE_HEIGHT
        self.setFixedHeight(int(lines * line) + theme.px(14))


class CodeBlock(QFrame):
    def __init__(self, slices: Slices) -> None:
        super().__init__()
        self.setObjectName("code")
        self._slices = slices
        self._block = Block("", code=True)
        self._coloured = False
        self._language = label("", theme.TINY, 400, "muted")
        self._copy = CopyButton(kind="quiet")
        self._copy.setFont(font(theme.TINY))
        self._code = _Code()
        inside = column(self, 2)
        inside.setContentsMargins(theme.px(14), theme.px(2), theme.px(4), theme.px(4))
        inside.addLayout(row(self._language, None, self._copy))
        inside.addWidget(self._code)

    def display(self, block: Block, *, complete: bool) -> None:
        if block != self._block:
            self._grow(block.text)
            self._block = block
            self._copy.copies = block.text
            self._language.setText(block.language or "code")
            self._code.fit()
        if complete and not self._coloured:
            self._coloured = True
            self._colour_soon()

    def _grow(self, code: str) -> None:
        """Adds only what is new, so that a growing listing costs no more at its end."""
        before = self._block.text
        cursor = QTextCursor(self._code.document())
        if code.startswith(before) and before:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(code[len(before) :])
        else:
            cursor.select(QTextCursor.SelectionType.Document)
            cursor.insertText(code)
            self._space(cursor)
            # The field's own cursor went along to the end, and would scroll a wide line there.
            self._code.moveCursor(QTextCursor.MoveOperation.Start)
        self._coloured = False

    def _space(self, cursor: QTextCursor) -> None:
        cursor.select(QTextCursor.SelectionType.Document)
        lines = cursor.blockFormat()
        lines.setLineHeight(LINE_HEIGHT * 100, 1)
        cursor.setBlockFormat(lines)

    def _colour_soon(self) -> None:
        if prepared(self._block.language):
            self._slices.add(self._colour())
        else:
            QTimer.singleShot(ASK_AGAIN_MS, self, self._colour_soon)

    def _colour(self) -> Iterator[None]:
        cursor = QTextCursor(self._code.document())
        for i, (start, length, colour) in enumerate(coloured_spans(self._block.text, self._block.language)):
            form = QTextCharFormat()
            form.setForeground(QColor(colour))
            cursor.setPosition(start)
            cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(form)
            if i % 8 == 0:
                yield
