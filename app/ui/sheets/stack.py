"""Which sheet lies over the window. Somebody at the door comes before everything else."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.room.intents import AnswerHeir
from app.room.state import RoomState
from app.ui.api_view import ApiView
from app.ui.models_view import LookAgain, ModelsView
from app.ui.preferences import Preferences
from app.ui.screens.side import SideColumn
from app.ui.screens.speed import SpeedColumn
from app.ui.sheets.allow import AllowDialog
from app.ui.sheets.confirm import Confirm
from app.ui.sheets.device import DeviceCard, DevicesSheet
from app.ui.sheets.invite import InviteSheet
from app.ui.sheets.settings import SettingsSheet
from app.ui.widgets.device_chip import DeviceChip
from app.ui.widgets.overlay import Overlay

SIDE_SHEET = 320


class Sheets(QObject):
    """``wished`` gives an ``ApiWish`` or a ``ModelWish``; ``file_wanted`` asks for a model file to be chosen."""

    intent = Signal(object)
    preferred = Signal(object)
    relay_wanted = Signal(object)
    sharing_wanted = Signal(bool)
    wished = Signal(object)
    file_wanted = Signal()
    save_wanted = Signal()
    leaving = Signal()

    def __init__(self, desk: QWidget, preferences: Preferences) -> None:
        super().__init__(desk)
        self._desk = desk
        self._preferences = preferences
        self._state = RoomState()
        self._api, self._models = ApiView(), ModelsView()
        self._refresh: Callable[[RoomState], None] | None = None
        self.sheet: Overlay | None = None
        self.door: Overlay | None = None
        self._heir: Overlay | None = None

    def take(self, api: ApiView, models: ModelsView) -> None:
        """What the pages beside the room show from the next ``display`` on."""
        self._api, self._models = api, models

    def display(self, state: RoomState) -> None:
        if not state.phase.in_room and self._state.phase.in_room:
            self.close()
        self._state = state
        if self._refresh is not None:
            self._refresh(state)
        self._answer_door(state)
        self._answer_heir(state)

    def _answer_heir(self, state: RoomState) -> None:
        """The owner leaves and asks this device to own the room; closing the question is a no."""
        if not state.heir_wanted:
            if self._heir is not None:
                self._heir.dismiss()
            return
        if self._heir is not None:
            return
        question = Confirm(heir_words(state), "Own the room", "No")
        question.agreed.connect(lambda: self.intent.emit(AnswerHeir(yes=True)))
        question.declined.connect(lambda: self.intent.emit(AnswerHeir(yes=False)))
        self._heir = Overlay(self._desk, question, "Own this room?", Confirm.WIDTH, closable=False)
        self._heir.closed.connect(self._heir_closed)
        self._heir.open()

    def _heir_closed(self) -> None:
        self._heir = None

    def _answer_door(self, state: RoomState) -> None:
        if not state.waiting:
            if self.door is not None:
                self.door.dismiss()
            return
        if self.door is None:
            dialog = AllowDialog()
            dialog.intent.connect(self.intent)
            dialog.display(state.waiting)
            self.door = Overlay(self._desk, dialog, "Somebody wants to join", AllowDialog.WIDTH, closable=False)
            self.door.closed.connect(self._door_closed)
            self.door.open()
        elif isinstance(self.door.content, AllowDialog):
            self.door.content.display(state.waiting)

    def _door_closed(self) -> None:
        self.door = None

    def open(self, name: str) -> None:
        match name:
            case "invite":
                sheet = InviteSheet()
                self._show(sheet, "Invite", sheet.WIDTH, sheet.display)
            case "settings":
                self._open_settings()
            case "models":
                self._open_models()
            case "model-file":
                self._open_model_file()
            case "api":
                self._open_api()
            case "devices":
                devices = DevicesSheet()
                devices.intent.connect(self.intent)
                self._show(devices, "Devices", devices.WIDTH, devices.display)
            case "speed":
                speed = SpeedColumn(in_sheet=True)
                self._show(speed, "Speed", SIDE_SHEET, speed.display)
            case "menu":
                self._open_menu()
            case _:
                self._ask_to_leave()

    def open_device(self, id: str, anchor: QWidget | None = None) -> None:
        device = next((each for each in self._state.devices if each.id == id), None)
        if device is not None:
            card = DeviceCard(id)
            card.intent.connect(self.intent)
            self._show(card, device.name, card.WIDTH, card.display, anchor or self._focused_chip(id))

    def _focused_chip(self, id: str) -> QWidget | None:
        chips = self._desk.findChildren(DeviceChip)
        return next((chip for chip in chips if chip.device.id == id and chip.isVisible()), None)

    def _open_settings(self) -> None:
        sheet = SettingsSheet(self._preferences)
        sheet.intent.connect(self.intent)
        sheet.preferred.connect(self.preferred)
        sheet.relay_wanted.connect(self.relay_wanted)
        sheet.sharing_wanted.connect(self.sharing_wanted)
        sheet.save_wanted.connect(self.save_wanted)
        sheet.leave_wanted.connect(self._ask_to_leave)
        self._show(sheet, "Settings", sheet.WIDTH, sheet.display)

    def _open_models(self) -> None:
        from app.ui.sheets.models import ModelsSheet

        sheet = ModelsSheet()
        sheet.intent.connect(self.intent)
        sheet.wished.connect(self.wished)
        sheet.file_wanted.connect(self.file_wanted)
        sheet.done.connect(self.close)
        self._show(sheet, "Models", sheet.WIDTH, lambda state: sheet.display(self._models, state))
        self.wished.emit(LookAgain())

    def _open_model_file(self) -> None:
        from app.ui.sheets.model_file import ModelFileSheet

        sheet = ModelFileSheet()
        sheet.intent.connect(self.intent)
        sheet.wished.connect(self.wished)
        sheet.done.connect(self.close)
        self._show(sheet, "Model file", sheet.WIDTH, lambda state: sheet.display(self._models.file, state))

    def _open_api(self) -> None:
        from app.ui.sheets.api import ApiSheet

        sheet = ApiSheet()
        sheet.wished.connect(self.wished)
        self._show(sheet, "Serve API", sheet.WIDTH, lambda state: sheet.display(self._api, state))

    def _open_menu(self) -> None:
        menu = SideColumn(in_sheet=True)
        menu.intent.connect(self.intent)
        menu.done.connect(self.close)
        menu.models_wanted.connect(lambda: self.open("models"))
        menu.api_wanted.connect(lambda: self.open("api"))
        menu.settings_wanted.connect(lambda: self.open("settings"))
        menu.leave_wanted.connect(self._ask_to_leave)
        self._show(menu, "Menu", SIDE_SHEET, menu.display)

    def _ask_to_leave(self) -> None:
        sheet = Confirm(leave_words(self._state), "Leave")
        sheet.agreed.connect(self.close)
        sheet.agreed.connect(self.leaving)
        sheet.declined.connect(self.close)
        self._show(sheet, "Leave the room?", Confirm.WIDTH, lambda _state: None)

    def _show(
        self,
        content: QWidget,
        title: str,
        width: int,
        refresh: Callable[[RoomState], None],
        anchor: QWidget | None = None,
    ) -> None:
        self.close()
        refresh(self._state)
        overlay = Overlay(self._desk, content, title, width, anchor=anchor)
        overlay.closed.connect(lambda: self._forget(overlay))
        self._refresh, self.sheet = refresh, overlay
        overlay.open()
        if self.door is not None:
            self.door.raise_()

    def close(self) -> None:
        if self.sheet is not None:
            self.sheet.dismiss()

    def _forget(self, overlay: Overlay) -> None:
        if self.sheet is overlay:
            self.sheet, self._refresh = None, None


def heir_words(state: RoomState) -> str:
    owner = next((device.name for device in state.devices if device.creator), "The owner")
    return (
        f"{owner} is leaving and would leave the room to this device. You would decide who comes in, and the room "
        "goes on as long as this device is there. A running answer is written to its end."
    )


def leave_words(state: RoomState) -> str:
    if state.i_am_creator:
        return "You own this room. When you leave, it ends for everybody in it."
    mine = state.my_device
    if mine is not None and mine.layers is not None:
        return "This device holds layers. When it leaves, the room has to deal them again."
    return "The room goes on without this device."
