"""Many choices in as many lines as they need: a radio group, so arrow keys move in it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QWidget

from app.ui.widgets.flow import Flow
from app.ui.widgets.segmented import Segment


class Tabs(QWidget):
    """``chosen`` is emitted with a tab's text when a person picks it."""

    chosen = Signal(str)

    def __init__(self, texts: Sequence[str], name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._group = QButtonGroup(self)
        self.segments: dict[str, Segment] = {}
        flow = Flow()
        for text in texts:
            self.segments[text] = segment = Segment(text, framed=True)
            segment.clicked.connect(lambda _checked=False, text=text: self.chosen.emit(text))
            self._group.addButton(segment)
            flow.addWidget(segment)
        self.setLayout(flow)

    def set_choice(self, text: str) -> None:
        self.segments[text].setChecked(True)
