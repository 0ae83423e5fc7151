"""A button that copies a text, and says so for a moment."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.ui.widgets.button import Button

SHOW_COPIED_MS = 1500
COPIED = "Copied"


class CopyButton(Button):
    """``copies`` is what it copies now."""

    def __init__(self, word: str = "Copy", kind: str = "", name: str = "") -> None:
        super().__init__(word, kind, self._copy)
        self.copies = ""
        self._word = word
        self.setAccessibleName(name or word)
        self.keep_width_for(word, COPIED)

    def _copy(self) -> None:
        QApplication.clipboard().setText(self.copies)
        self.setText(COPIED)
        QTimer.singleShot(SHOW_COPIED_MS, self, lambda: self.setText(self._word))
