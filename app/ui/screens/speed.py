"""The right column: how fast the room is, and why."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.room.state import RoomState
from app.ui import theme
from app.ui.speed_words import facts, sentence
from app.ui.widgets.facts import Facts
from app.ui.widgets.hop_bars import HopBars, hops
from app.ui.widgets.spark import Spark
from app.ui.widgets.text import label

WIDTH = 288


class SpeedColumn(QWidget):
    def __init__(self, *, in_sheet: bool = False) -> None:
        super().__init__()
        self.setObjectName("" if in_sheet else "column")
        self._spark, self._bars, self._facts = Spark(), HopBars(), Facts(spacing=8)
        self._sentence = label("", theme.SMALL, 400, "soft", wrap=True)
        self._word = label("", theme.SMALL, 400, "muted")
        lines = QVBoxLayout(self)
        side = 0 if in_sheet else theme.px(18)
        lines.setContentsMargins(side, side, side, side)
        lines.setSpacing(theme.px(8))
        if not in_sheet:
            lines.addWidget(label("Speed", theme.BODY, 600))
        lines.addSpacing(theme.px(4))
        lines.addWidget(label("tok/s, last minute", 11.5, 400, "muted"))
        lines.addWidget(self._spark)
        lines.addSpacing(theme.px(4))
        lines.addWidget(self._boxed())
        lines.addSpacing(theme.px(6))
        lines.addWidget(self._word)
        lines.addWidget(self._bars)
        lines.addSpacing(theme.px(6))
        lines.addWidget(self._facts)
        lines.addStretch(1)

    def _boxed(self) -> QFrame:
        box = QFrame()
        box.setObjectName("tint")
        inside = QVBoxLayout(box)
        inside.setContentsMargins(theme.px(12), theme.px(10), theme.px(12), theme.px(10))
        inside.addWidget(self._sentence)
        return box

    def display(self, state: RoomState) -> None:
        self._spark.display(state.speed.history)
        self._sentence.setText(sentence(state))
        chain = hops(state.people)
        self._word.setText(f"One word, {state.speed.ms_per_word:.0f} ms")
        self._word.setVisible(bool(chain))
        self._bars.display(chain)
        self._bars.setVisible(bool(chain))
        self._facts.display(facts(state))
