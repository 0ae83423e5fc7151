"""A model file somebody brought: what it says of itself, before it is added to the list."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.room.intents import ChooseModel
from app.room.state import Phase, RoomState
from app.ui import model_words, theme, words
from app.ui.markdown import Block
from app.ui.models_view import AddFile, DropFile, FileLook
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.code_block import CodeBlock
from app.ui.widgets.facts import Facts
from app.ui.widgets.mark import Mark
from app.ui.widgets.progress import ProgressBar
from app.ui.widgets.row import row
from app.ui.widgets.slices import Slices
from app.ui.widgets.text import label, set_tone

STAYS = "The file stays where it is. A room runs it on this device only, as no other device has it."
ADDED = "It is in the list of models now."
NO_LICENCE = "The file names none. Look where you got it."
NO_TEMPLATE = "The file has none; a plain form of conversation is used."
TEMPLATE_LINES = 12
READING, ADDING = "Reading what the file says of itself", "Checking the file"


def file_facts(look: FileLook) -> list[tuple[str, str]]:
    return [
        ("Size", words.size(look.bytes)),
        ("Needs", words.gb(look.need_gb)),
        ("Layers", str(look.layers)),
        ("Longest context", words.positions(look.context)),
    ]


def shortened(template: str) -> str:
    """Its first lines: a whole one may have thousands."""
    lines = template.strip().splitlines()
    more = len(lines) - TEMPLATE_LINES
    return "\n".join(lines[:TEMPLATE_LINES]) + (f"\n… {words.count(more, 'more line')}" if more > 0 else "")


class ModelFileSheet(QWidget):
    """``wished`` gives a ``ModelWish``; ``done`` closes the sheet."""

    WIDTH = 560
    wished = Signal(object)
    intent = Signal(object)
    done = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._look: FileLook | None = None
        self._slices = Slices(self)
        self._name = label("", theme.HEAD, 600, wrap=True)
        self._path = label("", theme.SMALL, 400, "muted", wrap=True)
        self._working = QWidget()
        self._does = label("", tone="muted", wrap=True)
        working = row(Mark(20, moving=True), spacing=12)
        working.addWidget(self._does, 1)
        self._working.setLayout(working)
        self._bar = ProgressBar()
        self._facts = Facts(spacing=6)
        self._licence = label("", wrap=True)
        self._template = label("", theme.SMALL, 400, "muted", wrap=True)
        self._code = CodeBlock(self._slices)
        self._found = QWidget()
        self._says = label("", theme.SMALL, 400, "muted", wrap=True)
        self.add = Button("Add to the list", "primary", lambda: self.wished.emit(AddFile()))
        self.choose = Button("Choose it", "primary", self._choose)
        self.cancel = Button("Cancel", "", self._cancel)
        self._build()

    def _build(self) -> None:
        found = column(self._found, 10)
        found.addWidget(self._facts)
        for heading, parts in (("Licence", (self._licence,)), ("Chat template", (self._template, self._code))):
            found.addWidget(label(heading, theme.SMALL, 600, "muted"))
            for part in parts:
                found.addWidget(part)
        lines = column(self, 12)
        for part in (self._name, self._path, self._working, self._bar, self._found, self._says):
            lines.addWidget(part)
        lines.addLayout(row(None, self.cancel, self.add, self.choose))

    def display(self, look: FileLook | None, state: RoomState) -> None:
        if look is None:
            return
        if look != self._look:
            self._look = look
            self._show(look)
        row = next((row for row in state.rows if row.key == look.key), None) if look.key else None
        self.choose.setVisible(row is not None and state.phase is Phase.ROOM)
        self.cancel.setText("Done" if look.key else "Close" if look.trouble else "Cancel")

    def _show(self, look: FileLook) -> None:
        reading = not look.label and not look.trouble
        adding = look.adding is not None and not look.key and not look.trouble
        self._name.setText(look.label or look.path.name)
        self._path.setText(str(look.path.parent))
        self._working.setVisible(reading or adding)
        self._does.setText(READING if reading else ADDING)
        self._bar.setVisible(adding and look.adding is not None and look.adding.total > 0)
        if look.adding is not None and look.adding.total:
            self._bar.display(look.adding.share)
            self._does.setText(model_words.progress(look.adding))
        self._found.setVisible(bool(look.label) and not look.key)
        if look.label:
            self._show_found(look)
        self._say(look)
        self.add.setVisible(not look.key and not look.trouble)
        self.add.setEnabled(not reading and not adding)

    def _show_found(self, look: FileLook) -> None:
        self._facts.display(file_facts(look))
        self._licence.setText(look.licence or NO_LICENCE)
        set_tone(self._licence, "" if look.licence else "muted")
        self._template.setText(NO_TEMPLATE)
        self._template.setVisible(not look.template)
        self._code.setVisible(bool(look.template))
        self._code.display(Block(shortened(look.template), True, "jinja"), complete=True)

    def _say(self, look: FileLook) -> None:
        text = f"{look.trouble} {look.remedy}".strip() or (ADDED if look.key else STAYS if look.label else "")
        self._says.setText(text)
        self._says.setVisible(bool(text))
        set_tone(self._says, "bad" if look.trouble else "good" if look.key else "muted")

    def _choose(self) -> None:
        if self._look is not None:
            self.intent.emit(ChooseModel(self._look.key))
        self._cancel()

    def _cancel(self) -> None:
        self.wished.emit(DropFile())
        self.done.emit()
