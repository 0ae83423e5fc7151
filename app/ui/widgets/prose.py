"""A block of Markdown that is not code."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel

from app.ui import theme
from app.ui.fonts import font
from app.ui.markdown import Block, style, with_cursor


class Prose(QLabel):
    """Remembers its height for a width, and wishes for no size of its own.

    A label lays its whole text out for every such question, three times over for a wish; the column around decides.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heights: dict[int, int] = {}
        self.setFont(font(theme.BODY))
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.LinksAccessibleByMouse
        )
        self.setOpenExternalLinks(True)

    def display(self, block: Block, *, live: bool) -> None:
        self._heights.clear()
        self.setText(style() + (with_cursor(block.text) if live else block.text))

    def sizeHint(self) -> QSize:
        return QSize(0, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0)

    def heightForWidth(self, width: int) -> int:
        known = self._heights.get(width)
        if known is None:
            known = self._heights[width] = super().heightForWidth(width)
        return known
