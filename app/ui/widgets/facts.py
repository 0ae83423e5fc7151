"""Names with their figures, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.ui import theme
from app.ui.widgets.text import label


class Facts(QWidget):
    def __init__(self, spacing: int = 8) -> None:
        super().__init__()
        self._shown: tuple[tuple[str, str], ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(theme.px(spacing))
        self._grid.setHorizontalSpacing(theme.px(12))
        self._grid.setColumnStretch(0, 1)

    def display(self, facts: Sequence[tuple[str, str]]) -> None:
        if tuple(facts) == self._shown:
            return
        if [name for name, _ in facts] == [name for name, _ in self._shown]:
            self._refill(facts)
        else:
            self._rebuild(facts)
        self._shown = tuple(facts)

    def _refill(self, facts: Sequence[tuple[str, str]]) -> None:
        for i, (_, figure) in enumerate(facts):
            item = self._grid.itemAtPosition(i, 1)
            if item is not None:
                shown = item.widget()
                if isinstance(shown, QLabel):
                    shown.setText(figure)

    def _rebuild(self, facts: Sequence[tuple[str, str]]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.hide()
                old.deleteLater()
        for i, (name, figure) in enumerate(facts):
            self._grid.addWidget(label(name, theme.SMALL, 400, "soft", wrap=True), i, 0)
            value = label(figure, theme.SMALL, 500)
            self._grid.addWidget(value, i, 1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
