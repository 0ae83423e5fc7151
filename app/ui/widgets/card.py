"""A white card with a hairline and a low shadow."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.ui import theme
from app.ui.paint import fill, outline, painting

SHADOW = 5


class Card(QFrame):
    """A column of widgets; ``padding`` between edge and content in pixels at 100 % text."""

    def __init__(self, padding: int = 18, spacing: int = 8) -> None:
        super().__init__()
        self.column = QVBoxLayout(self)
        side = theme.px(padding)
        self.column.setContentsMargins(side, side, side, side + SHADOW)
        self.column.setSpacing(theme.px(spacing))

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = theme.palette()
        box = QRectF(self.rect()).adjusted(0, 0, 0, -SHADOW)
        with painting(self) as painter:
            for spread in range(SHADOW, 0, -1):
                fill(painter, box.adjusted(0, spread, 0, spread), palette.shadow, theme.CARD_RADIUS)
            fill(painter, box, palette.card, theme.CARD_RADIUS)
            outline(painter, box, palette.line, theme.CARD_RADIUS)


def rule(*, upright: bool = False) -> QFrame:
    """A hairline."""
    made = QFrame()
    made.setObjectName("rule")
    made.setProperty("upright", "true" if upright else "false")
    return made


def column(parent: QWidget | None = None, spacing: int = 8) -> QVBoxLayout:
    """A layout without margins."""
    made = QVBoxLayout() if parent is None else QVBoxLayout(parent)
    made.setContentsMargins(0, 0, 0, 0)
    made.setSpacing(theme.px(spacing))
    return made
