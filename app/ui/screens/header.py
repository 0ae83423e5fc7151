"""The bar above every room: code, Chat and Code, devices, memory, Invite."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QVBoxLayout, QWidget

from app.room.codes import format_code
from app.room.state import RoomState
from app.ui import theme, words
from app.ui.api_view import ApiView
from app.ui.paint import painting
from app.ui.widgets.button import Button, round_button
from app.ui.widgets.chip_bar import ChipBar
from app.ui.widgets.mark import Mark, draw_mark
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.text import label

CHAT, CODE = "chat", "code"


class MarkButton(QAbstractButton):
    """The mark, which leaves the room when pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Leave the room")
        self.setToolTip("Leave the room")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedSize(theme.px(24), theme.px(24))

    def sizeHint(self) -> QSize:
        return self.size()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            draw_mark(painter, QRectF(self.rect()))


class Header(QWidget):
    leave_wanted = Signal()
    invite_wanted = Signal()
    api_wanted = Signal()
    settings_wanted = Signal()
    menu_wanted = Signal()
    device_picked = Signal(str)
    devices_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("header")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._narrow: bool | None = None
        self._has_list = False
        self.mark = MarkButton()
        self.mark.clicked.connect(lambda _checked=False: self.leave_wanted.emit())
        self.code = Button("", "code", self.invite_wanted.emit)
        self.switch = Segmented(((CHAT, "Chat"), (CODE, "Code")), "Chat or Code")
        self.switch.set_choice(CHAT)
        self.switch.set_enabled(CODE, False, "Code mode is not in this version yet")
        self.chips = ChipBar()
        self.chips.picked.connect(self.device_picked)
        self.chips.all_wanted.connect(self.devices_wanted)
        self.total = label("", theme.SMALL, 400, "muted")
        self.invite = Button("Invite", "primary", self.invite_wanted.emit)
        self.serve = Button(ApiView().button, "", self.api_wanted.emit)
        self.settings = round_button("settings", "Settings", self.settings_wanted.emit)
        self.menu = round_button("menu", "Menu", self.menu_wanted.emit)
        self._first, self._second = QHBoxLayout(), QHBoxLayout()
        rows = QVBoxLayout(self)
        rows.setContentsMargins(theme.px(20), 0, theme.px(20), 0)
        rows.setSpacing(0)
        for line in (self._first, self._second):
            line.setSpacing(theme.px(10))
            rows.addLayout(line)
        self._arrange(narrow=False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange(narrow=self.width() < theme.px(theme.MEDIUM))

    def _arrange(self, *, narrow: bool) -> None:
        if narrow == self._narrow:
            return
        self._narrow = narrow
        for line in (self._first, self._second):
            while line.takeAt(0) is not None:
                pass
        middle = (self.switch, self.chips)
        ends = (self.total, self.invite, self.serve, self.settings, self.menu)
        self._put(self._first, (self.mark, self.code))
        self._put(self._second if narrow else self._first, middle)
        if narrow:
            self._first.addStretch(1)
        self._put(self._first, ends)
        self.setFixedHeight(theme.px(theme.HEADER) * (2 if narrow else 1) - (theme.px(8) if narrow else 0))
        self._show_right()

    def _put(self, line: QHBoxLayout, widgets: tuple[QWidget, ...]) -> None:
        for widget in widgets:
            line.addWidget(widget, 1 if widget is self.chips else 0)

    def show_list(self, shown: bool) -> None:
        """Whether the left column, which holds Settings, is on the screen."""
        self._has_list = shown
        self._show_right()

    def _show_right(self) -> None:
        wide = self.width() >= theme.px(960)
        self.total.setVisible(wide or self._has_list or bool(self._narrow))
        self.serve.setVisible(not self._narrow and (wide or not self._has_list))
        self.settings.setVisible(not self._narrow and not self._has_list)
        self.menu.setVisible(bool(self._narrow))

    def show_api(self, view: ApiView) -> None:
        self.serve.setText(view.button)
        self.serve.setToolTip(view.words)

    def display(self, state: RoomState) -> None:
        self.code.setText(format_code(state.code))
        self.code.setAccessibleName(f"Room code {' '.join(state.code)}, opens the invite")
        self.chips.display(state.devices)
        self.total.setText(f"{words.gb(state.pooled_gb)} pooled")
        self._show_right()


class PlainHeader(QWidget):
    """Before any room: the mark, the name, Models, the API, Settings."""

    models_wanted = Signal()
    api_wanted = Signal()
    settings_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("header")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(theme.px(theme.HEADER))
        line = QHBoxLayout(self)
        line.setContentsMargins(theme.px(20), 0, theme.px(12), 0)
        line.setSpacing(theme.px(4))
        line.addWidget(Mark(24))
        line.addSpacing(theme.px(10))
        line.addWidget(label("Pooled", theme.BODY, 600))
        line.addStretch(1)
        self.models = Button("Models", "quiet", self.models_wanted.emit)
        self.serve = Button(ApiView().button, "quiet", self.api_wanted.emit)
        for button in (self.models, self.serve, Button("Settings", "quiet", self.settings_wanted.emit)):
            line.addWidget(button)

    def show_api(self, view: ApiView) -> None:
        self.serve.setText(view.button)
        self.serve.setToolTip(view.words)

    def set_ready(self, ready: bool) -> None:
        """Models and the API are known only some seconds after the window."""
        for button in (self.models, self.serve):
            button.setEnabled(ready)
