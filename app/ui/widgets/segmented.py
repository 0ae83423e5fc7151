"""A few choices in one pill: a radio group, so arrow keys move in it and Tab enters it once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QSizePolicy, QWidget

from app.ui import theme
from app.ui.fonts import font
from app.ui.paint import CENTRE, fill, outline, painting, write


class Segment(QRadioButton):
    """One choice; ``framed`` where no pill lies around it."""

    def __init__(self, text: str, *, framed: bool = False) -> None:
        super().__init__(text)
        self._framed = framed
        self.setFont(font(theme.BODY, 500))
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        width = QFontMetrics(self.font()).horizontalAdvance(self.text()) + theme.px(24)
        return QSize(width, theme.px(theme.CONTROL) - 8)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, pos: object) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect())
        colour = palette.accent if self.isChecked() else palette.soft
        with painting(self) as painter:
            if self.isChecked():
                fill(painter, box, palette.tint, box.height() / 2)
            if self._framed:
                line = palette.accent if self.isChecked() else palette.line
                outline(painter, box, line, box.height() / 2 - 0.5)
            if not self.isEnabled():
                painter.setOpacity(0.45)
            write(painter, box, self.text(), self.font(), colour, CENTRE)


class Segmented(QWidget):
    """``chosen`` is emitted with a choice's key when a person picks it."""

    chosen = Signal(object)

    def __init__(self, choices: Sequence[tuple[Hashable, str]] = (), name: str = "") -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(4, 4, 4, 4)
        self._row.setSpacing(2)
        self._choices: tuple[tuple[Hashable, str], ...] = ()
        self._segments: dict[Hashable, Segment] = {}
        self._group = QButtonGroup(self)
        self.set_choices(choices)

    def set_choices(self, choices: Sequence[tuple[Hashable, str]]) -> None:
        if tuple(choices) == self._choices:
            return
        self._choices = tuple(choices)
        for old in self._segments.values():
            old.setParent(None)
            old.deleteLater()
        self._segments = {key: self._segment(key, text) for key, text in choices}

    def _segment(self, key: Hashable, text: str) -> Segment:
        made = Segment(text)
        self._group.addButton(made)
        self._row.addWidget(made)
        made.clicked.connect(lambda _checked=False: self.chosen.emit(key))
        return made

    def set_choice(self, key: Hashable) -> None:
        segment = self._segments.get(key)
        if segment is not None and not segment.isChecked():
            segment.setChecked(True)

    def set_enabled(self, key: Hashable, enabled: bool, why: str = "") -> None:
        self._segments[key].setEnabled(enabled)
        self._segments[key].setToolTip(why)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect())
        with painting(self) as painter:
            fill(painter, box, palette.card, box.height() / 2)
            outline(painter, box, palette.line, box.height() / 2 - 0.5)
