"""Buttons. Focus comes by keyboard only, so a focus ring never appears under the mouse."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QPushButton

from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.icon import icon

SMALL_KINDS = frozenset({"small", "small-bad", "action"})


class Button(QPushButton):
    """``kind`` names a rule of the stylesheet: primary, big, wide, strong, quiet, action, link, bad, item, round..."""

    def __init__(self, text: str = "", kind: str = "", on: Callable[[], object] | None = None, glyph: str = "") -> None:
        super().__init__(text)
        self.setProperty("kind", kind)
        self.setFont(font(theme.SMALL if kind in SMALL_KINDS else theme.BODY, 500, mono=kind == "code"))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAutoDefault(False)
        if glyph:
            self.set_glyph(glyph)
        if on is not None:
            self.clicked.connect(lambda _checked=False: on())

    def set_glyph(self, name: str) -> None:
        side = theme.px(16)
        quiet = self.property("kind") == "action"
        self.setIcon(icon(name, theme.palette().muted if quiet else theme.palette().ink))
        self.setIconSize(QSize(side, side))

    def set_kind(self, kind: str) -> None:
        if self.property("kind") != kind:
            self.setProperty("kind", kind)
            self.style().unpolish(self)
            self.style().polish(self)

    def keep_width_for(self, *texts: str) -> None:
        """Wide enough for each text, so that a change of wording moves nothing."""
        metrics = QFontMetrics(font(theme.BODY, 600))
        widest = max(metrics.horizontalAdvance(text) for text in texts)
        self.setMinimumWidth(widest + theme.px(36))


def round_button(glyph: str, name: str, on: Callable[[], object] | None = None) -> Button:
    """A small round button with a sign; ``name`` is what it is called."""
    made = Button("", "round", on, glyph)
    made.setAccessibleName(name)
    made.setToolTip(name)
    return made
