"""The window: shows a room's state, sends a person's intents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QCloseEvent
from PySide6.QtWidgets import QApplication, QMainWindow

from app.room.codes import format_code
from app.room.intents import Leave
from app.room.state import Phase, RoomState
from app.ui import looks
from app.ui.api_view import ApiView
from app.ui.desk import Desk
from app.ui.file_drop import FileDrop
from app.ui.models_view import FileLook, LookAt, ModelsView
from app.ui.open_file import choose_model_file
from app.ui.preferences import Preferences
from app.ui.save_chat import save_chat
from app.ui.sheets.stack import Sheets
from app.ui.this_device import ThisDevice
from app.ui.widgets.focus_ring import FocusRing
from app.ui.widgets.layer_band import DOING
from app.ui.widgets.toasts import Toasts

if TYPE_CHECKING:
    from app.room.near import NearbyRoom

REPAINT_MS = 50
SIZE, SMALLEST = QSize(1280, 820), QSize(440, 480)


class MainWindow(QMainWindow):
    """``offer`` takes states as fast as they come and shows the newest twenty times a second.

    ``wished`` gives what is wanted of the API (``ApiWish``) and of models (``ModelWish``).
    """

    intent = Signal(object)
    preferred = Signal(object)
    relay_wanted = Signal(object)
    sharing_wanted = Signal(bool)
    wished = Signal(object)
    closing = Signal()

    def __init__(self, device: ThisDevice, preferences: Preferences) -> None:
        super().__init__()
        self.state = RoomState()
        self._api, self._models = ApiView(), ModelsView()
        self._device = device
        self._preferences = preferences
        self._repaint = QTimer(self, interval=REPAINT_MS, singleShot=True)
        self._repaint.setObjectName("repaint")
        self._repaint.timeout.connect(lambda: self.display(self.state))
        FileDrop(self).dropped.connect(self.look_at)
        self.setMinimumSize(SMALLEST)
        self.resize(SIZE)
        self.rebuild()

    def rebuild(self) -> None:
        """Makes every widget anew, after the look or the size of text changed."""
        draft = self.desk.draft if hasattr(self, "desk") else ""
        nearby = self.desk.start.nearby.rooms if hasattr(self, "desk") else ()
        self.desk = Desk(self._device, self._preferences)
        self.setCentralWidget(self.desk)
        self.toasts = Toasts(self.desk)
        self.sheets = Sheets(self.desk, self._preferences)
        self.ring = FocusRing(self.desk)
        self._connect()
        self.desk.draft = draft
        self.offer_nearby(nearby)
        self.display(self.state)

    def _connect(self) -> None:
        for source in (self.desk, self.toasts, self.sheets):
            source.intent.connect(self.intent)
        self.desk.wanted.connect(self.sheets.open)
        self.desk.device_picked.connect(self.sheets.open_device)
        self.desk.chosen.connect(self._chose)
        self.sheets.preferred.connect(self._prefer)
        self.sheets.relay_wanted.connect(self.relay_wanted)
        self.sheets.sharing_wanted.connect(self.sharing_wanted)
        self.sheets.wished.connect(self.wished)
        self.sheets.file_wanted.connect(self._choose_file)
        self.sheets.save_wanted.connect(lambda: save_chat(self, self.state))
        self.sheets.leaving.connect(lambda: self.intent.emit(Leave()))

    def set_device(self, device: ThisDevice) -> None:
        """The GPU has been looked at."""
        self._device = device
        self.desk.set_device(device)

    def offer(self, state: RoomState) -> None:
        self._tell_changes(self.state, state)
        self.state = state
        self._repaint_soon()

    def offer_api(self, view: ApiView) -> None:
        self._api = view
        self._repaint_soon()

    def offer_models(self, view: ModelsView) -> None:
        self._models = view
        self._repaint_soon()

    def look_at(self, path: Path) -> None:
        """Shows what a model file says of itself, once it is read."""
        if self._device.ready:
            self._models = replace(self._models, file=FileLook(path))
            self.wished.emit(LookAt(path))
            self.sheets.take(self._api, self._models)
            self.sheets.open("model-file")

    def _choose_file(self) -> None:
        path = choose_model_file(self)
        if path is not None:
            self.look_at(path)

    def _repaint_soon(self) -> None:
        if not self._repaint.isActive():
            self._repaint.start()

    def offer_nearby(self, rooms: Sequence[NearbyRoom]) -> None:
        """The rooms that announce themselves on this network now."""
        self.desk.start.show_nearby(rooms)

    def display(self, state: RoomState) -> None:
        self.state = state
        self.setWindowTitle(f"Pooled · {format_code(state.code)}" if state.phase.in_room else "Pooled")
        self.desk.show_api(self._api)
        self.desk.display(state)
        self.toasts.lift(self.desk.foot_height)
        self.toasts.display(state.notices)
        self.sheets.take(self._api, self._models)
        self.sheets.display(state)

    def _tell_changes(self, before: RoomState, now: RoomState) -> None:
        """Says in words what a screen reader cannot see, and asks for attention from the background."""
        if now.phase is not before.phase and now.phase in DOING:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, DOING[now.phase][0]))
        answered = before.live is not None and now.live is None
        knocked = len(now.waiting) > len(before.waiting)
        if (answered or knocked or now.phase is Phase.OVER is not before.phase) and not self.isActiveWindow():
            QApplication.alert(self)

    def _chose(self, name: str, gb: float) -> None:
        self._remember(msgspec.structs.replace(self._preferences, name=name, gb=gb))

    def _prefer(self, preferences: Preferences) -> None:
        """The sheet stays open over the window in its new look."""
        kept = msgspec.structs.replace(preferences, name=self._preferences.name, gb=self._preferences.gb)
        self._remember(kept)
        self.restyle()
        self.sheets.open("settings")

    def restyle(self) -> None:
        """Takes the look from the preferences and the system again."""
        looks.apply(cast(QApplication, QApplication.instance()), looks.theme_for(self._preferences))
        self.rebuild()

    def _remember(self, preferences: Preferences) -> None:
        self._preferences = preferences
        self.preferred.emit(preferences)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._repaint.stop()
        self.desk.close_down()
        event.accept()
        self.closing.emit()
