"""Settings: the owner's for the room, everybody's for this window."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.core.settings import load_settings
from app.room.intents import ChangeSettings
from app.room.precision import Precision
from app.room.settings import RoomSettings
from app.room.state import RoomState
from app.ui import theme
from app.ui.preferences import Look, Preferences
from app.ui.sheets.choices import CACHES, KEPT, LENGTHS, PERSONAS, SPLITS, VISIBLE, WORDINGS
from app.ui.sheets.relay import RelaySection
from app.ui.widgets.button import Button
from app.ui.widgets.card import column, rule
from app.ui.widgets.row import row
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.setting import Setting
from app.ui.widgets.switch import Switch
from app.ui.widgets.text import label

NARROW = 430
LOOKS = {Look.SYSTEM: "System", Look.LIGHT: "Light", Look.DARK: "Dark"}
TEXTS = {100: "100 %", 125: "125 %", 150: "150 %", 200: "200 %"}
SHARED = {
    True: "Layers are copied from devices that have them, and given to those that lack them.",
    False: "Every file is fetched from its source, and none is given away.",
}
Choice = TypeVar("Choice", bound=Hashable)


class SettingsSheet(QWidget):
    """``preferred`` tells how this window should look from now on, ``relay_wanted`` a ``RelayWish``,
    ``sharing_wanted`` whether model files are shared with the room."""

    WIDTH = 580
    intent = Signal(object)
    preferred = Signal(object)
    relay_wanted = Signal(object)
    sharing_wanted = Signal(bool)
    save_wanted = Signal()
    leave_wanted = Signal()

    def __init__(self, preferences: Preferences) -> None:
        super().__init__()
        self._settings, self._preferences = RoomSettings(), preferences
        self._refreshers: list[Callable[[], None]] = []
        self._rows: list[Setting] = []
        lines = column(self, 20)
        self._owner = QWidget()
        self._fill_owner(column(self._owner, 14))
        self._room = QWidget()
        self._fill_room(column(self._room, 14))
        window = column(spacing=14)
        self._fill_window(window)
        lines.addWidget(self._owner)
        lines.addLayout(window)
        lines.addWidget(self._room)

    def _fill_owner(self, lines: QVBoxLayout) -> None:
        _heading(lines, "Joining")
        self._switch(
            lines,
            "Ask before new devices join",
            lambda s: s.ask_first,
            _with("ask_first"),
            ("You press Allow for every device that comes with the code.", "Anyone with the code gets in."),
        )
        self._switch(
            lines,
            "Programs may ask",
            lambda s: s.api_clients,
            _with("api_clients"),
            (
                "Programs on the room's computers get answers from its model.",
                "Programs get no answers, and those that were in the room are disconnected.",
            ),
        )
        _heading(lines, "Conversation")
        self._choice(lines, "Who reads the chat", VISIBLE, lambda s: s.visibility, _with("visibility"))
        self._choice(lines, "Answers", LENGTHS, lambda s: s.style.length, _with_style("length"))
        self._switch(
            lines,
            "Think before answering",
            lambda s: s.style.thinking,
            _with_style("thinking"),
            ("Better answers, later. The thoughts can be unfolded.", "Answers begin at once."),
        )
        _heading(lines, "Model")
        self._choice(lines, "Manner", PERSONAS, lambda s: s.style.persona, _with_style("persona"))
        self._choice(lines, "Wording", WORDINGS, lambda s: s.style.wording, _with_style("wording"))
        self._choice(lines, "Layers are dealt", SPLITS, lambda s: s.split, _with("split"))
        self._switch(
            lines,
            "Deal again by itself",
            lambda s: s.auto_redeal,
            _with("auto_redeal"),
            ("When a device is lost, the room goes on with the others.", "The room waits until you deal again."),
        )
        self._fill_state(lines)

    def _fill_state(self, lines: QVBoxLayout) -> None:
        """What counts from the next start of a model on."""
        _heading(lines, "From the next start on")
        self._choice(lines, "Memory of the conversation", CACHES, lambda s: s.kv, _with("kv"))
        self._choice(lines, "States kept", KEPT, lambda s: _nearest(s.checkpoints), _with("checkpoints"))
        self._switch(
            lines,
            "Keep them on disk, too",
            lambda s: s.checkpoints_on_disk,
            _with("checkpoints_on_disk"),
            ("A restarted device goes on where it was.", "A restarted device reads the conversation again."),
        )
        self._switch(
            lines,
            "Whole floats between devices",
            lambda s: s.precision is Precision.FULL,
            lambda s, on: replace(s, precision=Precision.FULL if on else Precision.HALF),
            ("Any division of the layers gives the same answer; twice the data a word.", "Half floats, half the data."),
        )

    def _fill_window(self, lines: QVBoxLayout) -> None:
        _heading(lines, "This window")
        for name, choices, field in (("Look", LOOKS, "look"), ("Text size", TEXTS, "text")):
            control = Segmented(list(choices.items()), name)
            control.set_choice(getattr(self._preferences, field))
            control.chosen.connect(lambda value, field=field: self._prefer(field, value))
            self._add(lines, name, control).say("")
        motion = Switch("Motion")
        motion.setChecked(self._preferences.motion)
        motion.clicked.connect(lambda on: self._prefer("motion", on))
        self._add(lines, "Motion", motion).say("Off: nothing in this window moves by itself.")

        _heading(lines, "This device")
        sharing = Switch("Share model files in the room")
        sharing.setChecked(load_settings().room_weights)
        shared = self._add(lines, "Share model files in the room", sharing)
        shared.say(SHARED[sharing.isChecked()])
        sharing.clicked.connect(lambda on: shared.say(SHARED[bool(on)]))
        sharing.clicked.connect(self.sharing_wanted)

        _heading(lines, "Relay")
        relay = RelaySection(load_settings().relay)
        relay.wanted.connect(self.relay_wanted)
        lines.addWidget(relay)

    def _fill_room(self, lines: QVBoxLayout) -> None:
        _heading(lines, "Room")
        save = Button("Save the chat", "", self.save_wanted.emit)
        leave = Button("Leave the room", "bad", self.leave_wanted.emit)
        lines.addLayout(row(save, leave, None))

    def _add(self, lines: QVBoxLayout, name: str, control: QWidget) -> Setting:
        made = Setting(name, control)
        lines.addWidget(made)
        self._rows.append(made)
        return made

    def _choice(
        self,
        lines: QVBoxLayout,
        name: str,
        options: Mapping[Choice, tuple[str, str]],
        read: Callable[[RoomSettings], Choice],
        write: Callable[[RoomSettings, object], RoomSettings],
    ) -> None:
        control = Segmented([(key, text) for key, (text, _) in options.items()], name)
        control.chosen.connect(lambda value: self._change(write(self._settings, value)))
        setting = self._add(lines, name, control)

        def refresh() -> None:
            now = read(self._settings)
            control.set_choice(now)
            setting.say(options[now][1])

        self._refreshers.append(refresh)

    def _switch(
        self,
        lines: QVBoxLayout,
        name: str,
        read: Callable[[RoomSettings], bool],
        write: Callable[[RoomSettings, object], RoomSettings],
        on_off: tuple[str, str],
    ) -> None:
        control = Switch(name)
        control.clicked.connect(lambda on: self._change(write(self._settings, on)))
        setting = self._add(lines, name, control)

        def refresh() -> None:
            control.setChecked(read(self._settings))
            setting.say(on_off[0] if read(self._settings) else on_off[1])

        self._refreshers.append(refresh)

    def _change(self, settings: RoomSettings) -> None:
        self._settings = settings
        self._refresh()
        self.intent.emit(ChangeSettings(settings))

    def _prefer(self, field: str, value: object) -> None:
        self._preferences = msgspec.structs.replace(self._preferences, **{field: value})
        self.preferred.emit(self._preferences)

    def display(self, state: RoomState) -> None:
        self._settings = state.settings
        self._owner.setVisible(state.i_am_creator)
        self._room.setVisible(state.phase.in_room)
        self._refresh()

    def _refresh(self) -> None:
        for refresh in self._refreshers:
            refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        for each in self._rows:
            each.stack(self.width() < theme.px(NARROW))


def _nearest(kept: int) -> int:
    """The choice on the control that is no more than ``kept``."""
    return max(choice for choice in KEPT if choice <= kept)


def _heading(lines: QVBoxLayout, text: str) -> None:
    if lines.count():
        lines.addWidget(rule())
    lines.addWidget(label(text, theme.SMALL, 600, "muted"))


def _with(field: str) -> Callable[[RoomSettings, object], RoomSettings]:
    return lambda settings, value: replace(settings, **{field: value})


def _with_style(field: str) -> Callable[[RoomSettings, object], RoomSettings]:
    return lambda settings, value: replace(settings, style=replace(settings.style, **{field: value}))
