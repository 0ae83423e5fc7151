"""The conversation with its columns: list at the left, speed at the right, each folding where room is short."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.room.state import Phase, RoomState
from app.ui import theme, words
from app.ui.screens.conversation import MARGIN, WIDEST, Conversation
from app.ui.screens.side import WIDTH as SIDE_WIDTH
from app.ui.screens.side import SideColumn
from app.ui.screens.speed import WIDTH as SPEED_WIDTH
from app.ui.screens.speed import SpeedColumn
from app.ui.widgets.banner import Banner
from app.ui.widgets.card import column, rule
from app.ui.widgets.composer import Composer
from app.ui.widgets.layer_band import LayerBand
from app.ui.widgets.row import row
from app.ui.widgets.scroll import Scroll
from app.ui.widgets.slices import Slices
from app.ui.widgets.text import label

TIGHT = 0.8


def waiting_words(state: RoomState) -> str:
    """Who waits and who types, in one line."""
    parts: list[str] = []
    if state.my_position:
        parts.append(
            "Your question is next" if state.my_position == 1 else f"Your question is number {state.my_position}"
        )
    elif state.queue_length:
        parts.append(f"{words.count(state.queue_length, 'question')} waiting")
    if state.typing:
        parts.append(f"{state.typing} is typing…")
    if state.speed.context_share > TIGHT:
        parts.append("The context is nearly full, the oldest words go first")
    if state.context_wanted and not state.transcript:
        short, long = words.positions(state.speed.context_max), words.positions(state.context_wanted)
        parts.append(f"Opened with {short} of context: the room has no memory for {long}")
    return " · ".join(parts)


class ChatScreen(QWidget):
    """``columns_changed`` tells whether the list is on the screen."""

    intent = Signal(object)
    speed_wanted = Signal()
    columns_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.slices = Slices(self)
        self.side, self.speed = SideColumn(), SpeedColumn()
        self.band, self.banner = LayerBand(), Banner()
        self.conversation = Conversation(self.slices)
        self.composer = Composer()
        self._waiting = label("", theme.SMALL, 400, "muted")
        for part in (self.side, self.banner, self.conversation, self.composer):
            part.intent.connect(self.intent)
        self.band.speed_wanted.connect(self.speed_wanted)
        self._build()

    def _build(self) -> None:
        self._left_line, self._right_line = rule(upright=True), rule(upright=True)
        self.side.setFixedWidth(theme.px(SIDE_WIDTH))
        speed = Scroll(SPEED_WIDTH, margin=0)
        speed.lines.setContentsMargins(0, 0, 0, 0)
        speed.lines.addWidget(self.speed)
        speed.setFixedWidth(theme.px(SPEED_WIDTH))
        self._speed_scroll = speed
        whole = row(self.side, self._left_line, spacing=0)
        whole.addLayout(self._middle(), 1)
        whole.addWidget(self._right_line)
        whole.addWidget(speed)
        self.setLayout(whole)

    def _middle(self) -> QVBoxLayout:
        lines = column(spacing=0)
        self._top = column(spacing=8)
        self._top.addWidget(self.band)
        self._top.addWidget(self.banner)
        self._foot = column(spacing=6)
        self._foot.addWidget(self._waiting)
        self._foot.addWidget(self.composer)
        lines.addLayout(_held(self._top, WIDEST))
        lines.addWidget(self.conversation, 1)
        lines.addLayout(_held(self._foot, WIDEST))
        return lines

    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = self.width() >= theme.px(theme.WIDE)
        medium = self.width() >= theme.px(theme.MEDIUM)
        for part in (self._speed_scroll, self._right_line):
            part.setVisible(wide)
        for part in (self.side, self._left_line):
            part.setVisible(medium)
        self.band.offer_speed(not wide)
        self._set_margins(MARGIN if self.width() >= theme.px(560) else 12)
        self.band.set_narrow(not medium)
        self.columns_changed.emit(medium)

    def _set_margins(self, side: int) -> None:
        self._top.setContentsMargins(theme.px(side), theme.px(16), theme.px(side), 0)
        self._foot.setContentsMargins(theme.px(side), theme.px(4), theme.px(side), theme.px(14))
        self.conversation.set_margin(side)

    def display(self, state: RoomState) -> None:
        self.side.display(state)
        self.speed.display(state)
        self.band.display(state)
        self.banner.display(state)
        self.conversation.display(state)
        self._waiting.setText(waiting_words(state))
        self._waiting.setVisible(bool(waiting_words(state)))
        self.composer.display(state)
        self.composer.setVisible(state.phase is not Phase.OVER)


def _held(inner: QVBoxLayout, widest: int) -> QVBoxLayout:
    """At most so wide, centred, margins apart."""
    box = QWidget()
    box.setMaximumWidth(theme.px(widest + 2 * MARGIN))
    box.setLayout(inner)
    line = row()
    line.addStretch(1)
    line.addWidget(box, 1000)
    line.addStretch(1)
    around = column(spacing=0)
    around.addLayout(line)
    return around
