"""Rooms that announce themselves on this network, each with a button to knock at it without a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.ui import theme
from app.ui.paint import outline, painting
from app.ui.widgets.button import Button
from app.ui.widgets.card import column, rule
from app.ui.widgets.row import row
from app.ui.widgets.text import label

if TYPE_CHECKING:
    from app.room.near import NearbyRoom

MOST_SHOWN = 4
SILENT = "heard, but does not answer"


class NearbyRooms(QWidget):
    """Takes no place while there is none. ``knocked`` tells where."""

    knocked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.rooms: tuple[NearbyRoom, ...] = ()
        self._lines = column(self, 8)
        self._lines.setContentsMargins(0, theme.px(8), 0, 0)
        self._lines.addWidget(rule())
        self._lines.addWidget(label("Rooms on this network"))
        self._rows: list[_Row] = []
        self.hide()

    def display(self, rooms: Sequence[NearbyRoom], enabled: bool) -> None:
        """Those that answer come first; more than a few are counted out, since a code finds them too."""
        self.rooms = tuple(rooms)
        shown = sorted(rooms, key=lambda room: not room.reachable)[:MOST_SHOWN]
        for old in self._rows:
            self._lines.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._rows = [_Row(room, enabled) for room in shown]
        for made in self._rows:
            made.knock.clicked.connect(lambda _checked=False, where=made.where: self.knocked.emit(where))
            self._lines.addWidget(made)
        self.setVisible(bool(shown))


class _Row(QFrame):
    def __init__(self, room: NearbyRoom, enabled: bool) -> None:
        super().__init__()
        self.where = room.where
        self._title = f"{room.name}'s room"
        self._name = label(self._title, weight=500)
        self._name.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.knock = Button("Knock", "link")
        self.knock.setAccessibleName(f"Knock at {self._title}")
        self.knock.setEnabled(enabled)
        self.knock.setVisible(room.reachable)
        said = column(spacing=0)
        said.addWidget(self._name)
        if not room.reachable:
            said.addWidget(label(SILENT, theme.SMALL, 400, "muted", wrap=True))
        line = row()
        side = theme.px(12)
        line.setContentsMargins(side, theme.px(10), side, theme.px(10))
        line.addLayout(said, 1)
        line.addWidget(self.knock)
        self.setLayout(line)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """A name that does not fit ends in dots; the whole of it is in the tooltip."""
        metrics = QFontMetrics(self._name.font())
        text = metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, self._name.width())
        self._name.setText(text)
        self._name.setToolTip(self._title if text != self._title else "")

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            outline(painter, QRectF(self.rect()), theme.palette().line, 10)
