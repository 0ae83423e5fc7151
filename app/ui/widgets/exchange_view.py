"""A question with its answer, and what may be done with them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QApplication, QWidget

from app.room.intents import Continue, Regenerate
from app.room.state import Exchange
from app.ui import theme
from app.ui.widgets.answer_text import AnswerText
from app.ui.widgets.bubble import Bubble
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.mark import Mark
from app.ui.widgets.row import row
from app.ui.widgets.slices import Slices
from app.ui.widgets.text import label, set_tone
from app.ui.widgets.thinking import ThinkingFold

HIDDEN = "Asked in private. Only the asker and the room's owner read this."


class ExchangeView(QWidget):
    intent = Signal(object)

    def __init__(self, exchange: Exchange, slices: Slices, *, mine: bool) -> None:
        super().__init__()
        self.exchange: Exchange | None = None
        self._caption = label("", theme.SMALL, 400, "muted", wrap=True)
        self._working = Mark(20, moving=True)
        self._waiting = label("Reading the question", theme.SMALL, 400, "muted")
        self._thinking = ThinkingFold()
        self._answer = AnswerText(slices)
        self._copy = Button("Copy", "action", self._copied, "copy")
        self._again = Button("Answer again", "action", lambda: self.intent.emit(Regenerate()))
        self._on = Button("Continue", "small", lambda: self.intent.emit(Continue()))
        question = HIDDEN if exchange.hidden else exchange.question
        asker = exchange.client or ("" if mine else exchange.asker)
        self._lay(Bubble(question, f"{exchange.client}, over the API" if exchange.client else asker))

    def _lay(self, bubble: Bubble) -> None:
        inside = column(self, 6)
        inside.addWidget(bubble)
        inside.addSpacing(theme.px(8))
        inside.addWidget(self._caption)
        inside.addWidget(self._thinking)
        inside.addLayout(row(self._working, self._waiting, None))
        inside.addWidget(self._answer)
        inside.addLayout(row(self._on, self._copy, self._again, None, spacing=18))

    def display(self, exchange: Exchange, *, can_redo: bool) -> None:
        self._offer(exchange, can_redo)
        if exchange == self.exchange:
            return
        self.exchange = exchange
        self._caption.setText(caption(exchange))
        set_tone(self._caption, "bad" if exchange.failed else "muted")
        silent = exchange.live and not exchange.answer and not exchange.hidden
        self._working.setVisible(silent)
        self._working.set_moving(silent)
        self._waiting.setVisible(silent and exchange.thinking is None)
        self._thinking.setVisible(bool(exchange.thinking))
        self._thinking.display(exchange.thinking or "", running=exchange.thinking_open)
        self._answer.setVisible(bool(exchange.answer))
        self._answer.display(exchange.answer, live=exchange.live)

    def _offer(self, exchange: Exchange, can_redo: bool) -> None:
        self._copy.setVisible(bool(exchange.answer) and not exchange.live)
        self._again.setVisible(can_redo)
        self._on.setVisible(can_redo and exchange.capped)

    def _copied(self) -> None:
        if self.exchange is not None:
            QApplication.clipboard().setText(self.exchange.answer)


def caption(exchange: Exchange) -> str:
    """ "The room", with the statistics of a finished answer."""
    parts = ["The room"]
    if exchange.replaced:
        parts.append("answered again below")
    if exchange.failed:
        parts.append("this answer was cut off")
    if exchange.stats:
        parts.append(exchange.stats)
    if exchange.client:
        parts.append("not part of this chat's memory")
    return " · ".join(parts)
