"""What is wrong in the room and what may be done about it, above the conversation."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.room.intents import BackToStart, Intent, Redeal, Stop
from app.room.state import Phase, RoomState
from app.ui import theme, words
from app.ui.paint import fill, outline, painting
from app.ui.widgets.button import Button
from app.ui.widgets.card import SHADOW, Card, column
from app.ui.widgets.icon import draw_icon
from app.ui.widgets.row import row
from app.ui.widgets.text import label


@dataclass(frozen=True)
class Message:
    """``act`` with its word, when something can be done from here."""

    title: str
    text: str
    word: str = ""
    act: Intent | None = None
    bad: bool = True


def message(state: RoomState) -> Message | None:
    """None while nothing needs saying."""
    match state.phase:
        case Phase.HELD:
            who = state.held_by or "A device"
            text = "The answer waits and goes on by itself when it is back."
            return Message(f"{who} is not responding", text, *_stop(state))
        case Phase.DEGRADED:
            return _missing(state)
        case Phase.REDEALING:
            return Message("Dealing the layers again", _redeal_text(state), bad=False)
        case Phase.RECONNECTING:
            return Message("Connection to the room's owner lost", "This device keeps knocking for a minute.")
        case Phase.OVER:
            text = f"{state.remedy or 'What was said stays readable here.'}"
            return Message(state.trouble or "This room has ended", text, "Back to start", BackToStart())
        case _:
            return _offer(state)


def _stop(state: RoomState) -> tuple[str, Intent | None]:
    return ("Stop the answer", Stop()) if state.can_stop else ("", None)


def _missing(state: RoomState) -> Message:
    """Only a model host that is here can deal again; without one the room waits, or looks for another by itself."""
    title = state.trouble or "A device that held layers is gone"
    if any(device.model_host and not device.away for device in state.devices):
        return Message(title, "Questions wait until the layers are dealt again.", "Deal again", Redeal())
    after = "starts with whoever is here" if state.settings.auto_redeal else "ends"
    return Message(title, f"The conversation is kept. After a while of waiting the model {after}.")


def _redeal_text(state: RoomState) -> str:
    loading = [device for device in state.people if device.layers]
    shares = [device.progress or float(device.ready) for device in loading]
    done = sum(shares) / len(shares) if shares else 0.0
    return f"The conversation is kept. {words.percent(done)} loaded."


def _offer(state: RoomState) -> Message | None:
    if state.redeal_reason and state.phase.has_model:
        return Message("The room could run better", state.redeal_reason, "Deal again", Redeal(), bad=False)
    return None


class _Sign(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.bad = True
        self.setFixedSize(theme.px(20), theme.px(20))

    def sizeHint(self) -> QSize:
        return self.size()

    def paintEvent(self, event: QPaintEvent) -> None:
        colour = theme.palette().bad if self.bad else theme.palette().accent
        with painting(self) as painter:
            draw_icon(painter, "alert", QRectF(self.rect()), colour)


class Banner(Card):
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__(padding=14, spacing=2)
        self._message: Message | None = None
        self._sign = _Sign()
        self._title = label("", theme.BODY, 600, wrap=True)
        self._text = label("", theme.SMALL, 400, "soft", wrap=True)
        self._button = Button("", "small", self._act)
        said = column(spacing=2)
        said.addWidget(self._title)
        said.addWidget(self._text)
        line = row(spacing=12)
        line.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(said, 1)
        line.addWidget(self._button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.column.addLayout(line)

    def display(self, state: RoomState) -> None:
        told = message(state)
        self.setVisible(told is not None)
        if told is None or told == self._message:
            return
        self._message = told
        self._title.setText(told.title)
        self._text.setText(told.text)
        self._button.setVisible(told.act is not None)
        self._button.setText(told.word)
        self._sign.bad = told.bad
        self.setAccessibleName(f"{told.title}. {told.text}")
        self.update()

    def _act(self) -> None:
        if self._message is not None and self._message.act is not None:
            self.intent.emit(self._message.act)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect()).adjusted(0, 0, 0, -SHADOW)
        bad = self._message is None or self._message.bad
        with painting(self) as painter:
            fill(painter, box, palette.card, theme.CARD_RADIUS)
            outline(painter, box, palette.bad if bad else palette.accent, theme.CARD_RADIUS)
