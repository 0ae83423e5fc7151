"""What fills the window: a header and the screen of the state's phase.

The screens of a room are loaded and made when first shown, or ahead of that by ``prepare``: the start screen waits
for none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget
from shiboken6 import isValid

from app.room.state import Phase, RoomState
from app.ui import theme
from app.ui.api_view import ApiView
from app.ui.preferences import Preferences
from app.ui.screens.header import Header, PlainHeader
from app.ui.screens.start import StartScreen
from app.ui.this_device import ThisDevice
from app.ui.widgets.card import column
from app.ui.widgets.scroll import Scroll

if TYPE_CHECKING:
    from app.ui.screens.chat import ChatScreen
    from app.ui.screens.connecting import ConnectingScreen
    from app.ui.screens.loading import LoadingScreen
    from app.ui.screens.lobby import LobbyScreen
    from app.ui.screens.model import ModelScreen
    from app.ui.screens.trouble import TroubleScreen

    ScreenWithState = ConnectingScreen | LobbyScreen | TroubleScreen | ModelScreen | LoadingScreen | ChatScreen
    Screen = TypeVar("Screen", bound=ScreenWithState)


BEFORE_ROOM, IN_ROOM = ("connecting", "lobby", "trouble"), ("model", "loading", "chat")


class Desk(QWidget):
    """``wanted`` names a sheet to open; ``device_picked`` a device's id; ``chosen`` name and GB to remember."""

    intent = Signal(object)
    wanted = Signal(str)
    device_picked = Signal(str)
    chosen = Signal(str, float)

    def __init__(self, device: ThisDevice, preferences: Preferences) -> None:
        super().__init__()
        self.setObjectName("page")
        self._preferences = preferences
        self._phase: Phase | None = None
        self.plain_header, self.header = PlainHeader(), Header()
        self._start_page = Scroll(1000, margin=0)
        self._stack = QStackedWidget()
        lines = column(self, 0)
        for part in (self.plain_header, self.header, self._stack):
            lines.addWidget(part)
        self.set_device(device)
        self._stack.addWidget(self._start_page)
        self._connect()

    @cached_property
    def connecting(self) -> ConnectingScreen:
        from app.ui.screens.connecting import ConnectingScreen

        return self._joined(ConnectingScreen())

    @cached_property
    def lobby(self) -> LobbyScreen:
        from app.ui.screens.lobby import LobbyScreen

        return self._joined(LobbyScreen())

    @cached_property
    def trouble(self) -> TroubleScreen:
        from app.ui.screens.trouble import TroubleScreen

        return self._joined(TroubleScreen())

    @cached_property
    def model(self) -> ModelScreen:
        from app.ui.screens.model import ModelScreen

        made = self._joined(ModelScreen())
        made.models_wanted.connect(lambda: self.wanted.emit("models"))
        return made

    @cached_property
    def loading(self) -> LoadingScreen:
        from app.ui.screens.loading import LoadingScreen

        return self._joined(LoadingScreen())

    @cached_property
    def chat(self) -> ChatScreen:
        from app.ui.screens.chat import ChatScreen

        made = self._joined(ChatScreen())
        made.side.settings_wanted.connect(lambda: self.wanted.emit("settings"))
        made.side.api_wanted.connect(lambda: self.wanted.emit("api"))
        made.side.models_wanted.connect(lambda: self.wanted.emit("models"))
        made.speed_wanted.connect(lambda: self.wanted.emit("speed"))
        made.columns_changed.connect(lambda _shown: self._list_shown())
        return made

    def _joined(self, screen: Screen) -> Screen:
        self._stack.addWidget(screen)
        screen.intent.connect(self.intent)
        return screen

    def prepare(self) -> Iterator[None]:
        """Makes the screens that no state has asked for yet, one at a time."""
        for name in (*BEFORE_ROOM, *IN_ROOM):
            if isValid(self):  # a change of the look may have put another desk in this one's place
                getattr(self, name)
            yield

    @property
    def _chat_shown(self) -> bool:
        return "chat" in vars(self) and self._stack.currentWidget() is self.chat

    def _connect(self) -> None:
        for source, name in (
            (self.plain_header.models_wanted, "models"),
            (self.plain_header.api_wanted, "api"),
            (self.plain_header.settings_wanted, "settings"),
            (self.header.api_wanted, "api"),
            (self.header.settings_wanted, "settings"),
            (self.header.invite_wanted, "invite"),
            (self.header.menu_wanted, "menu"),
            (self.header.devices_wanted, "devices"),
            (self.header.leave_wanted, "leave"),
        ):
            source.connect(lambda name=name: self.wanted.emit(name))
        self.header.device_picked.connect(self.device_picked)

    def set_device(self, device: ThisDevice) -> None:
        """The start screen is made for the device; what was typed into the old one is kept."""
        self.plain_header.set_ready(device.ready)
        code = self.start.code.text if hasattr(self, "start") else ""
        name = self.start.name.name if hasattr(self, "start") else self._preferences.name
        nearby = self.start.nearby.rooms if hasattr(self, "start") else ()
        offer = self.start.last.offer if hasattr(self, "start") else None
        while (item := self._start_page.lines.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.deleteLater()
        self.start = StartScreen(device, name, self._preferences.gb)
        self.start.code.set_text(code)
        self.start.show_nearby(nearby)
        self.start.show_last(offer)
        self.start.intent.connect(self.intent)
        self.start.chosen.connect(self.chosen)
        self._start_page.lines.addWidget(self.start)

    def show_api(self, view: ApiView) -> None:
        for header in (self.plain_header, self.header):
            header.show_api(view)

    @property
    def draft(self) -> str:
        return self.chat.composer.text if "chat" in vars(self) else ""

    @draft.setter
    def draft(self, text: str) -> None:
        if text != self.draft:
            self.chat.composer.box.setPlainText(text)

    @property
    def foot_height(self) -> int:
        """How much of the foot belongs to the composer."""
        return theme.px(80) if self._chat_shown else 0

    def display(self, state: RoomState) -> None:
        screen = self._screen(state)
        in_room = any(screen is not None and screen is vars(self).get(name) for name in IN_ROOM)
        self.plain_header.setVisible(not in_room)
        self.header.setVisible(in_room)
        if in_room:
            self.header.display(state)
        if screen is not None:
            screen.display(state)
        else:
            self.start.show_last(state.offer)
        changed = self._stack.currentWidget() is not (screen or self._start_page)
        self._stack.setCurrentWidget(screen or self._start_page)
        self._list_shown()
        if changed or self._phase is None:
            self._focus_first(screen)
        self._phase = state.phase

    def _screen(self, state: RoomState) -> ScreenWithState | None:
        """None: the start screen."""
        match state.phase:
            case Phase.START:
                return None
            case Phase.CONNECTING:
                return self.connecting
            case Phase.LOBBY:
                return self.lobby
            case Phase.ERROR:
                return self.trouble
            case Phase.OVER:
                return self.chat if state.transcript else self.trouble
            case Phase.ROOM:
                return self.model
            case Phase.STARTING:
                return self.loading
            case Phase.RECONNECTING:
                return self.chat if state.label else self.connecting
            case _:
                return self.chat

    def _focus_first(self, screen: ScreenWithState | None) -> None:
        """Where typing makes sense at once."""
        if self._chat_shown and not self.chat.composer.isHidden():
            self.chat.composer.box.setFocus()
        elif screen is None:
            self.start.code.setFocus()
        else:
            self.setFocus()

    def _list_shown(self) -> None:
        shown = self._chat_shown and self.width() >= theme.px(theme.MEDIUM)
        self.header.show_list(shown)

    def close_down(self) -> None:
        """No work is left behind when the window goes."""
        if "chat" in vars(self):
            self.chat.slices.clear()
