"""Between Start and the first answer: every device fetches its own layers."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.room.intents import StopStart
from app.room.predict import rate
from app.room.state import LoadState, RoomState
from app.ui import theme, words
from app.ui.device_words import idle
from app.ui.widgets.button import Button
from app.ui.widgets.card import Card, column
from app.ui.widgets.lanes import Lanes
from app.ui.widgets.mark import Mark
from app.ui.widgets.row import row
from app.ui.widgets.scroll import Scroll
from app.ui.widgets.text import label

WIDEST = 760
STEPS = {
    "downloading": "Downloading",
    "copying from the room": "Copying from another device",
    "loading": "Loading from disk",
    "preparing": "Preparing the GPU",
}


def own_line(load: LoadState) -> str:
    """This device's part: "Downloading, 5.2 GB of 10.4 GB, about 3 min left"."""
    parts = [STEPS.get(load.step, load.step.capitalize())] if load.step else []
    if load.bytes_total:
        parts.append(f"{words.size(load.bytes_done)} of {words.size(load.bytes_total)}")
    if load.seconds_left is not None:
        parts.append(words.duration(load.seconds_left))
    return ", ".join(parts)


def expected(state: RoomState) -> str:
    """What the model host reckons with; "" when it cannot tell."""
    if state.load is None or not state.load.predicted:
        return ""
    count = sum(1 for device in state.people if device.layers)
    return f"Expected: about {rate(state.load.predicted)} on {words.count(count, 'device')}."


class LoadingScreen(QWidget):
    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._mark = Mark(32, moving=True)
        self._title = label("", theme.TITLE, 600, wrap=True)
        self._note = label("", tone="muted", wrap=True)
        self._lanes = Lanes(loading=True)
        self._expected = label("", theme.SMALL, 400, "soft", wrap=True)
        self._own = label("", theme.SMALL, 500, wrap=True)
        self._idle = label("", theme.SMALL, 400, "muted", wrap=True)
        self.give_up = Button("Give up", "", lambda: self.intent.emit(StopStart()))
        self._scroll = Scroll(WIDEST)
        self._scroll.lines.addStretch(1)
        self._scroll.lines.addWidget(self._card())
        self._scroll.lines.addStretch(2)
        column(self).addWidget(self._scroll)

    def _card(self) -> Card:
        card = Card(padding=theme.GUTTER, spacing=12)
        said = column(spacing=4)
        said.addWidget(self._title)
        said.addWidget(self._note)
        head = row(self._mark, spacing=16)
        head.addLayout(said, 1)
        card.column.addLayout(head)
        card.column.addSpacing(theme.px(4))
        card.column.addWidget(self._lanes)
        card.column.addWidget(self._own)
        card.column.addWidget(self._expected)
        card.column.addWidget(self._idle)
        card.column.addLayout(row(None, self.give_up))
        return card

    def resizeEvent(self, event: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._scroll.set_margin(theme.GUTTER if self.width() >= theme.px(560) else 12)

    def display(self, state: RoomState) -> None:
        holders = [device for device in state.people if device.layers]
        self._show_title(state, all(device.ready for device in holders) and bool(holders))
        self._lanes.setVisible(bool(holders))
        self._lanes.display(holders, state.layers)
        own = own_line(state.load) if state.load is not None else ""
        self._own.setText(f"This device: {own[:1].lower()}{own[1:]}" if own else "")
        self._own.setVisible(bool(own))
        others = [device for device in state.people if holders and not device.layers]
        why = [idle(device) or f"{device.name} holds no layers." for device in others]
        self._idle.setText("\n".join(why))
        self._idle.setVisible(bool(why))
        self._expected.setText(expected(state))
        self._expected.setVisible(bool(expected(state)))
        self.give_up.setVisible(state.i_am_creator)

    def _show_title(self, state: RoomState, complete: bool) -> None:
        count = sum(1 for device in state.people if device.layers)
        if complete:
            self._title.setText(f"Starting {state.label}")
            self._note.setText("All devices have their layers. The room runs it through once.")
        else:
            self._title.setText(f"Loading {state.label}")
            parts = f"{words.count(state.layers, 'layer')} over {words.count(count, 'device')}"
            note = "Each device fetches only its own layers"
            self._note.setText(f"{note}: {parts}." if count else f"{note}. Dealing them now.")
