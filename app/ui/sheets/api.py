"""The API page: other programs of this computer use the room's model (spec: product §1.17)."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.room.state import RoomState
from app.serve.status import Phase
from app.ui import theme, words
from app.ui.api_view import ApiView
from app.ui.sheets.api_address import ApiAddress
from app.ui.sheets.api_door import ApiDoor
from app.ui.sheets.api_tools import ApiTools
from app.ui.widgets.card import column, rule
from app.ui.widgets.facts import Facts
from app.ui.widgets.pill import Pill
from app.ui.widgets.row import row
from app.ui.widgets.setting import Setting
from app.ui.widgets.switch import Switch
from app.ui.widgets.text import label, set_tone

NARROW = 430
TONES = {Phase.OFF: "calm", Phase.WAITING: "calm", Phase.CONNECTED: "good", Phase.ANSWERING: ""}
ABOUT = (
    "Editors, agents and scripts ask it as they would ask OpenAI or Anthropic. Only this computer can reach it. "
    "What they ask is answered by the devices of the room."
)
TURNED_AWAY = "The room's owner does not let programs ask. They get no answers."
NO_MODEL = "No model runs yet. Until one does, programs are told to come back."


def note(view: ApiView, state: RoomState) -> str:
    """What else there is to say below the status."""
    if view.trouble:
        return view.remedy
    if not view.listening:
        return ""
    if state.phase.in_room and not state.settings.api_clients:
        return TURNED_AWAY
    if view.model is None:
        return NO_MODEL
    waiting = view.status.waiting
    return f"{words.count(waiting, 'request')} in line behind it." if waiting else ""


class ApiSheet(QWidget):
    """``wished`` gives an ``ApiWish``."""

    WIDTH = 640
    wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._view = ApiView()
        name = "Let programs on this computer use the room's model"
        self.switch = Switch(name)
        self.switch.clicked.connect(lambda on: self.wished.emit(replace(self._view.wish, on=bool(on))))
        self._setting = Setting(name, self.switch)
        self._setting.say(ABOUT)
        self._pill = Pill()
        self._trouble = label("", weight=500, tone="bad", wrap=True)
        self._note = label("", theme.SMALL, 400, "muted", wrap=True)
        self._door = ApiDoor()
        self._door.wished.connect(self.wished)
        self._address = ApiAddress()
        self._tools = ApiTools()
        self._programs = QWidget()
        self._counts = Facts(spacing=6)
        self._build()

    def _build(self) -> None:
        programs = column(self._programs, 8)
        programs.addWidget(rule())
        programs.addWidget(label("Programs that asked", theme.SMALL, 600, "muted"))
        programs.addWidget(self._counts)
        lines = column(self, 14)
        lines.addWidget(self._setting)
        said = column(spacing=6)
        said.addLayout(row(self._pill, None))
        said.addWidget(self._trouble)
        said.addWidget(self._note)
        lines.addLayout(said)
        for part in (self._programs, rule(), self._door, self._address, self._tools):
            lines.addWidget(part)

    def display(self, view: ApiView, state: RoomState) -> None:
        self._view = view
        self.switch.setChecked(view.wish.on)
        self._show_status(view, state)
        self._door.display(view.wish)
        self._address.display(view.listening)
        self._tools.display(view)
        clients = view.status.clients
        self._programs.setVisible(bool(view.listening and clients))
        self._counts.display([(client.name, words.count(client.answered, "answer")) for client in clients])

    def _show_status(self, view: ApiView, state: RoomState) -> None:
        if view.trouble:
            self._pill.display("Not on", "bad")
        else:
            self._pill.display(view.words, TONES[view.status.phase])
        self._trouble.setText(view.trouble)
        self._trouble.setVisible(bool(view.trouble))
        more = note(view, state)
        self._note.setText(more)
        self._note.setVisible(bool(more))
        set_tone(self._note, "soft" if view.trouble else "muted")

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._door.stack(self.width() < theme.px(NARROW))
