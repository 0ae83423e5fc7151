"""Before a model runs: which one, whether it fits, and the memory it would use."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QSizePolicy, QVBoxLayout, QWidget

from app.core.units import LARGEST_GB
from app.room.intents import ChooseContext, ChooseModel, SetPledge, Start
from app.room.state import ModelRow, RoomState
from app.ui import theme, words
from app.ui.device_words import hardware
from app.ui.widgets.button import Button
from app.ui.widgets.card import Card, column, rule
from app.ui.widgets.facts import Facts
from app.ui.widgets.invite_box import InviteBox
from app.ui.widgets.memory_meter import MemoryMeter
from app.ui.widgets.model_row import ModelOption
from app.ui.widgets.row import row
from app.ui.widgets.scroll import Scroll
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.stepper import Stepper
from app.ui.widgets.text import label

WIDEST, ABREAST, SIDE = 1100, 860, 340
CONTEXT_BESIDE = 640


def chosen_row(state: RoomState) -> ModelRow | None:
    return next((model for model in state.rows if model.key == state.chosen), None)


def start_words(state: RoomState) -> str:
    """What pressing Start would do, or why it cannot be pressed."""
    model = chosen_row(state)
    if model is None:
        return "A device with a GPU is needed to hold a model."
    if not model.fits:
        return f"{model.sentence[:1].upper()}{model.sentence[1:]}."
    if model.on_disk:
        return "It is on this device's disk."
    return f"This device fetches {words.size(model.download_bytes)} first, once."


def context_words(state: RoomState) -> str:
    model = chosen_row(state)
    if model is None or state.context:
        return ""
    return f"{words.positions(model.context)} is what the room chooses by itself"


class ModelScreen(QWidget):
    intent = Signal(object)
    models_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._scroll = Scroll(WIDEST)
        self._picker = Picker()
        self._side = MemorySide()
        for part in (self._picker, self._side):
            part.intent.connect(self.intent)
        self._picker.models_wanted.connect(self.models_wanted)
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._columns.setSpacing(theme.px(24))
        self._columns.addWidget(self._picker, 1, Qt.AlignmentFlag.AlignTop)
        self._columns.addWidget(self._side, 0, Qt.AlignmentFlag.AlignTop)
        self._scroll.lines.setContentsMargins(0, theme.px(34), 0, theme.px(24))
        self._scroll.lines.addLayout(self._columns)
        self._scroll.lines.addStretch(1)
        column(self).addWidget(self._scroll)

    def resizeEvent(self, event: QResizeEvent) -> None:
        wide = self.width() >= theme.px(ABREAST)
        self._columns.setDirection(QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom)
        self._side.setMinimumWidth(theme.px(SIDE) if wide else 0)
        self._side.setMaximumWidth(theme.px(SIDE) if wide else 1 << 20)
        self._columns.setAlignment(self._picker, Qt.AlignmentFlag.AlignTop if wide else Qt.AlignmentFlag(0))
        self._columns.setAlignment(self._side, Qt.AlignmentFlag.AlignTop if wide else Qt.AlignmentFlag(0))
        self._scroll.set_margin(theme.GUTTER if self.width() >= theme.px(560) else 16)

    def display(self, state: RoomState) -> None:
        self._picker.display(state)
        self._side.display(state)


class Picker(QWidget):
    intent = Signal(object)
    models_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._state = RoomState()
        self._options: dict[str, ModelOption] = {}
        self._group = QButtonGroup(self)
        self._list = column(spacing=8)
        self._none = label("", tone="muted", wrap=True)
        self._contexts = Segmented(name="Context length")
        self._contexts.chosen.connect(lambda positions: self.intent.emit(ChooseContext(positions)))
        self._context_note = label("", theme.SMALL, 400, "muted", wrap=True)
        self.start = Button("Start", "big", lambda: self.intent.emit(Start()))
        self.start.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._why = label("", tone="muted", wrap=True)
        self._raise = Button("", "", self._lend_more)
        self._build()

    def _build(self) -> None:
        lines = column(self, 8)
        every = Button("All models", "link", self.models_wanted.emit)
        lines.addLayout(row(label("Choose a model", theme.TITLE, 600), None, every))
        lines.addWidget(
            label("Anyone in the room may start it. Each device fetches only its own layers.", tone="muted", wrap=True)
        )
        lines.addSpacing(theme.px(4))
        lines.addLayout(self._list)
        lines.addWidget(self._none)
        lines.addSpacing(theme.px(6))
        self._context_title = label("Context", tone="soft")
        self._context_line = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._context_line.setSpacing(theme.px(10))
        self._context_line.addLayout(row(self._context_title, self._contexts, spacing=10))
        self._context_line.addWidget(self._context_note, 1)
        lines.addLayout(self._context_line)
        lines.addSpacing(theme.px(10))
        start = row(self.start, self._raise, spacing=10)
        start.addWidget(self._why, 1)
        lines.addLayout(start)

    def resizeEvent(self, event: QResizeEvent) -> None:
        beside = self.width() >= theme.px(CONTEXT_BESIDE)
        directions = QBoxLayout.Direction
        self._context_line.setDirection(directions.LeftToRight if beside else directions.TopToBottom)

    def display(self, state: RoomState) -> None:
        self._state = state
        self._show_rows(state)
        self._show_context(state)
        model = chosen_row(state)
        self.start.setEnabled(state.can_start)
        self._why.setText(start_words(state))
        raised = model.own_raise_gb if model is not None and not model.fits else None
        self._raise.setVisible(raised is not None)
        self._raise.setText(f"Lend {words.gb(raised or 0)} here")

    def _show_rows(self, state: RoomState) -> None:
        keys = [model.key for model in state.rows]
        if keys != list(self._options):
            self._rebuild(state.rows)
        for model in state.rows:
            option = self._options[model.key]
            option.display(model)
            if model.key == state.chosen and not option.isChecked():
                option.setChecked(True)
                for each in self._options.values():
                    each.updateGeometry()
        self._none.setVisible(not state.rows)
        self._none.setText("No device here has a GPU that can hold layers. Invite one that has.")

    def _rebuild(self, rows: tuple[ModelRow, ...]) -> None:
        for old in self._options.values():
            old.setParent(None)
            old.deleteLater()
        self._options = {}
        for model in rows:
            option = ModelOption(model)
            option.clicked.connect(lambda _checked=False, key=model.key: self.intent.emit(ChooseModel(key)))
            self._group.addButton(option)
            self._list.addWidget(option)
            self._options[model.key] = option

    def _show_context(self, state: RoomState) -> None:
        model = chosen_row(state)
        offered = model.contexts if model is not None else ()
        for part in (self._context_title, self._contexts):
            part.setVisible(len(offered) > 0)
        self._contexts.set_choices([(length, words.positions(length)) for length in offered])
        if model is not None:
            self._contexts.set_choice(state.context or model.context)
        self._context_note.setText(context_words(state) if len(offered) > 1 else "")

    def _lend_more(self) -> None:
        model = chosen_row(self._state)
        if model is not None and model.own_raise_gb is not None:
            self.intent.emit(SetPledge(model.own_raise_gb))


class MemorySide(QWidget):
    """What the room lends, and how to bring more."""

    intent = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._lent = label("", theme.SMALL, 400, "muted")
        self._meter, self._facts = MemoryMeter(), Facts(spacing=9)
        self._pledge = Stepper(1.0, LARGEST_GB)
        self._pledge.changed.connect(lambda gb: self.intent.emit(SetPledge(gb)))
        self._own = QWidget()
        self._invite = InviteBox()
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(theme.px(14))
        lines.addWidget(self._memory())
        lines.addWidget(self._invite)

    def _memory(self) -> Card:
        card = Card(padding=18, spacing=10)
        card.column.addLayout(row(label("The room's memory", theme.BODY, 600), None, self._lent))
        card.column.addWidget(self._meter)
        card.column.addWidget(self._facts)
        own = column(self._own, 8)
        own.addWidget(rule())
        own.addLayout(row(label("You lend", theme.SMALL, 500), None, self._pledge))
        card.column.addWidget(self._own)
        return card

    def display(self, state: RoomState) -> None:
        lenders = [device for device in state.people if device.holds_layers and not device.away]
        model = chosen_row(state)
        self._meter.display(lenders, model.need_gb if model is not None else 0.0)
        self._lent.setText(f"{words.gb(state.pooled_gb)} lent")
        self._facts.display([(hardware(d), words.gb(d.gb) if d.holds_layers else "–") for d in state.people])
        mine = state.my_device
        self._own.setVisible(mine is not None and mine.holds_layers)
        if mine is not None:
            self._pledge.set_value(mine.gb)
        self._invite.display(state.invite)
