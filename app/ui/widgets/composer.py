"""Where a question is written: a growing box, the context ring, and one button whose word follows the state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QTextOption
from PySide6.QtWidgets import QFrame, QHBoxLayout, QTextEdit

from app.prompt.chat import QUESTION_CHARS
from app.room.intents import Ask, Stop, Typing
from app.room.state import Phase, RoomState
from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.button import Button
from app.ui.widgets.card import Card
from app.ui.widgets.ring import Ring
from app.ui.widgets.text import label

TALLEST = 160
CLOSED = {
    Phase.DEGRADED: "A device is missing. Questions wait.",
    Phase.REDEALING: "The layers are being dealt again. The conversation is kept.",
    Phase.RECONNECTING: "Looking for the room's owner…",
    Phase.STARTING: "The model is loading…",
    Phase.ROOM: "Start a model to ask the room.",
    Phase.OVER: "This room has ended.",
}


class Action(Enum):
    """The button's word."""

    SEND = "Send"
    QUEUE = "Queue"
    STOP = "Stop"


@dataclass(frozen=True)
class Offer:
    action: Action
    enabled: bool


def offer(state: RoomState, text: str) -> Offer:
    """What the button does now."""
    askable = state.can_ask and 0 < len(text.strip()) <= QUESTION_CHARS
    if state.live is None:
        return Offer(Action.SEND, askable)
    if text.strip():
        return Offer(Action.QUEUE, askable)
    return Offer(Action.STOP, True) if state.can_stop else Offer(Action.QUEUE, False)


class _Box(QTextEdit):
    sent = Signal()
    given_up = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._composing = False
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setFont(font())
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setAccessibleName("Your question")
        self.document().setDocumentMargin(0)
        self.textChanged.connect(self.fit)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """A file that is dropped here is the window's."""
        return not source.hasUrls() and super().canInsertFromMimeData(source)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not self._composing and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.sent.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.given_up.emit()
        else:
            super().keyPressEvent(event)

    def fit(self) -> None:
        needed = int(self.document().size().height()) + 4
        self.setFixedHeight(max(theme.px(24), min(needed, theme.px(TALLEST))))

    def resizeEvent(self, event: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().resizeEvent(event)  # pyright: ignore[reportArgumentType]
        self.fit()


class Composer(Card):
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__(padding=10, spacing=0)
        self._state = RoomState()
        self.box = _Box()
        self.ring = Ring()
        self.button = Button("Send", "primary", self.act)
        self.button.keep_width_for(*(action.value for action in Action))
        self._too_long = label("", theme.TINY, 500, "bad")
        self._too_long.hide()
        line = QHBoxLayout()
        line.setContentsMargins(theme.px(6), 0, 0, 0)
        line.setSpacing(theme.px(12))
        line.addWidget(self.box, 1)
        line.addWidget(self._too_long)
        line.addWidget(self.ring, 0, Qt.AlignmentFlag.AlignBottom)
        line.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        line.setAlignment(self.box, Qt.AlignmentFlag.AlignVCenter)
        self.column.addLayout(line)
        self.box.sent.connect(self._send)
        self.box.given_up.connect(self._give_up)
        self.box.textChanged.connect(self._written)
        self.display(self._state)

    @property
    def text(self) -> str:
        return self.box.toPlainText()

    def display(self, state: RoomState) -> None:
        self._state = state
        self.ring.display(state.speed)
        placeholder = CLOSED.get(state.phase, "Ask the room…")
        if self.box.placeholderText() != placeholder:
            self.box.setPlaceholderText(placeholder)
        self._offer()

    def _offer(self) -> None:
        now = offer(self._state, self.text)
        self.button.setText(now.action.value)
        self.button.setEnabled(now.enabled)
        self.button.set_kind("strong" if now.action is Action.STOP else "primary")
        over = len(self.text.strip()) - QUESTION_CHARS
        self._too_long.setVisible(over > 0)
        self._too_long.setText(f"{over} too long")

    def _written(self) -> None:
        self._offer()
        if self.text.strip() and self._state.can_ask:
            self.intent.emit(Typing())

    def act(self) -> None:
        if offer(self._state, self.text).action is Action.STOP:
            self.intent.emit(Stop())
        else:
            self._send()

    def _send(self) -> None:
        text = self.text.strip()
        now = offer(self._state, text)
        if now.enabled and now.action is not Action.STOP:
            self.box.clear()
            self.intent.emit(Ask(text))

    def _give_up(self) -> None:
        if self._state.live is not None and self._state.can_stop:
            self.intent.emit(Stop())
