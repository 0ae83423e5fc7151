"""Above the conversation: the model, what the room is doing, its figures, and who holds which layers."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from app.room.state import Phase, RoomState
from app.ui import theme, words
from app.ui.widgets.button import round_button
from app.ui.widgets.card import Card
from app.ui.widgets.figure import Figure
from app.ui.widgets.lanes import Lanes
from app.ui.widgets.pill import Pill
from app.ui.widgets.row import row
from app.ui.widgets.share_bar import ShareBar
from app.ui.widgets.text import label

MANY = 6
"""More lanes than these are folded until somebody unfolds them."""
DOING = {
    Phase.ONLINE: ("Ready", "good"),
    Phase.ANSWERING: ("Answering", ""),
    Phase.HELD: ("Waiting", "bad"),
    Phase.DEGRADED: ("Device missing", "bad"),
    Phase.REDEALING: ("Dealing again", ""),
    Phase.STARTING: ("Starting", ""),
    Phase.RECONNECTING: ("Reconnecting", "bad"),
    Phase.OVER: ("Room over", "calm"),
}


class LayerBand(Card):
    """``speed_wanted``: the speed column is folded into a button here and was asked for."""

    speed_wanted = Signal()

    def __init__(self) -> None:
        super().__init__(padding=16, spacing=6)
        self._folded = self._narrow = self._many = False
        self._by_hand: bool | None = None
        self._wide: bool | None = None
        self._name = label("", theme.BODY, 600)
        self._pill = Pill()
        self._figures = (
            Figure("tok/s", "00.0"),
            Figure("ms a word", "00"),
            Figure("tokens", "000"),
            Figure("of 32K", "0.0K"),
        )
        self._speed_button = round_button("chart", "Speed", self.speed_wanted.emit)
        self._fold_button = round_button("up", "Fold the layers", self._turn)
        self._lanes, self._bar = Lanes(), ShareBar()
        self._build()

    def _build(self) -> None:
        self._head = QGridLayout()
        self._head.setHorizontalSpacing(theme.px(10))
        self._head.setVerticalSpacing(theme.px(2))
        self._head.setColumnStretch(1, 1)
        self._left = _group(self._name, self._pill)
        self._middle = _group(*self._figures)
        self._right = _group(self._speed_button, self._fold_button)
        self.column.addLayout(self._head)
        self.column.addWidget(self._lanes)
        self.column.addWidget(self._bar)
        self._bar.hide()
        self._arrange(wide=True)

    def _arrange(self, *, wide: bool) -> None:
        """One line, or the figures below the name."""
        if wide == self._wide:
            return
        self._wide = wide
        side = Qt.AlignmentFlag.AlignRight if wide else Qt.AlignmentFlag.AlignLeft
        self._head.addWidget(self._left, 0, 0)
        self._head.addWidget(self._middle, 0 if wide else 1, 1 if wide else 0, 1, 1 if wide else 3, side)
        self._head.addWidget(self._right, 0, 2, Qt.AlignmentFlag.AlignRight)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def _fit(self) -> None:
        parts = (self._left, self._middle, self._right)
        needed = sum(part.sizeHint().width() for part in parts) + theme.px(2 * 16 + 2 * 10)
        self._arrange(wide=self.width() >= needed)

    def offer_speed(self, offered: bool) -> None:
        self._speed_button.setVisible(offered)

    def display(self, state: RoomState) -> None:
        self._name.setText(state.label)
        self._pill.display(*DOING.get(state.phase, ("", "calm")))
        self._show_figures(state)
        self._fit()
        holders = [device for device in state.people if device.layers]
        self._many = len(holders) > MANY
        self._fold()
        self._lanes.display(holders, state.layers)
        self._bar.display(holders)

    def _show_figures(self, state: RoomState) -> None:
        speed = state.speed
        rate, pace, said, context = self._figures
        rate.display(f"{speed.tokens_per_second:.1f}" if speed.tokens_per_second else "–")
        pace.display(f"{speed.ms_per_word:.0f}" if speed.ms_per_word else "–")
        said.display(words.tokens(speed.tokens))
        context.display(words.tokens(speed.context_used), f"of {words.positions(speed.context_max)}")

    def _turn(self) -> None:
        self._by_hand = not self._folded
        self._fold()

    def set_narrow(self, narrow: bool) -> None:
        """Where room is short, the lanes are folded until somebody unfolds them."""
        if narrow != self._narrow:
            self._narrow, self._by_hand = narrow, None
            self._fold()

    def _fold(self) -> None:
        folded = self._by_hand if self._by_hand is not None else self._narrow or self._many
        if folded == self._folded:
            return
        self._folded = folded
        self._lanes.setVisible(not folded)
        self._bar.setVisible(folded)
        self._fold_button.set_glyph("down" if folded else "up")
        name = "Unfold the layers" if folded else "Fold the layers"
        self._fold_button.setAccessibleName(name)
        self._fold_button.setToolTip(name)


def _group(*widgets: QWidget) -> QWidget:
    made = QWidget()
    made.setLayout(row(*widgets, spacing=11))
    return made
