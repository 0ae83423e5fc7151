"""The exchanges of the room, newest at the foot; stays at the foot while the person is there."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.room.state import Exchange, RoomState
from app.ui import theme
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.exchange_view import ExchangeView
from app.ui.widgets.mark import Mark
from app.ui.widgets.scroll import Scroll
from app.ui.widgets.slices import Slices
from app.ui.widgets.text import label

WIDEST = 720
MARGIN = 22
AT_ONCE = 40
NEAR = 40


class Conversation(Scroll):
    intent = Signal(object)

    def __init__(self, slices: Slices) -> None:
        super().__init__(WIDEST, margin=MARGIN)
        self._slices = slices
        self._views: dict[str, ExchangeView] = {}
        self._limit = AT_ONCE
        self._state: RoomState | None = None
        self._at_foot = True
        self._earlier = Button("Show earlier questions", "quiet", self._show_earlier)
        self._empty = Empty()
        self.lines.setSpacing(theme.px(24))
        self.lines.addWidget(self._earlier, 0, Qt.AlignmentFlag.AlignHCenter)
        self.lines.addWidget(self._empty, 1)
        self._list = column(spacing=24)
        self.lines.addLayout(self._list)
        self.lines.addStretch(1)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._grew)

    def display(self, state: RoomState) -> None:
        self._state = state
        shown = state.transcript[-self._limit :]
        self._earlier.setVisible(len(state.transcript) > len(shown))
        self._empty.setVisible(not shown)
        self._empty.display(state)
        self._drop({item.id for item in shown})
        for item in shown:
            self._show(item, state, last=item is shown[-1])

    def _drop(self, kept: set[str]) -> None:
        for id in self._views.keys() - kept:
            gone = self._views.pop(id)
            gone.hide()
            gone.deleteLater()

    def _show(self, item: Exchange, state: RoomState, *, last: bool) -> None:
        view = self._views.get(item.id)
        if view is None:
            view = ExchangeView(item, self._slices, mine=item.asker_id == state.me)
            view.intent.connect(self.intent)
            self._views[item.id] = view
            self._list.insertWidget(self._place(item, state.transcript), view)
        view.display(item, can_redo=last and state.can_redo)

    def _place(self, item: Exchange, transcript: Sequence[Exchange]) -> int:
        """Behind those said before it: older ones may come later, when history arrives."""
        before = {other.id for other in transcript[: transcript.index(item)]}
        return sum(1 for id in self._views if id in before)

    def _show_earlier(self) -> None:
        self._limit += AT_ONCE
        if self._state is not None:
            self.display(self._state)

    def _scrolled(self, value: int) -> None:
        self._at_foot = value >= self.verticalScrollBar().maximum() - NEAR

    def _grew(self, _least: int, most: int) -> None:
        if self._at_foot:
            self.verticalScrollBar().setValue(most)


class Empty(QWidget):
    """Before the first question."""

    def __init__(self) -> None:
        super().__init__()
        self._title = label("Ask the room anything", theme.TITLE, 600, wrap=True)
        self._text = label("", tone="muted", wrap=True)
        lines = column(self, 8)
        lines.addStretch(1)
        lines.addWidget(Mark(36), 0, Qt.AlignmentFlag.AlignHCenter)
        lines.addSpacing(theme.px(8))
        for part in (self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            lines.addWidget(part)
        lines.addStretch(1)

    def display(self, state: RoomState) -> None:
        holders = sum(1 for device in state.people if device.layers)
        run = "one device runs it" if holders == 1 else f"{holders} devices run it together"
        self._title.setText("Ask the room anything" if state.phase.has_model else "Nothing was asked here")
        self._text.setText(f"{state.label} is ready, {run}." if state.phase.has_model else "")
