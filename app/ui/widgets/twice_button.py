"""A button for what cannot be taken back: the first press asks, the second, soon after, does it."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal

from app.ui.widgets.button import Button

ASKS_FOR_MS = 6000


class TwiceButton(Button):
    """``sure`` is the question in the place of ``word`` after the first press."""

    agreed = Signal()

    def __init__(self, word: str, sure: str) -> None:
        super().__init__(word, "small", self._pressed)
        self._word, self._sure = word, sure
        self._asking = QTimer(self, interval=ASKS_FOR_MS, singleShot=True)
        self._asking.timeout.connect(self._calm)

    def _pressed(self) -> None:
        if self._asking.isActive():
            self._asking.stop()
            self._calm()
            self.agreed.emit()
        else:
            self._asking.start()
            self.setText(self._sure)
            self.set_kind("small-bad")

    def _calm(self) -> None:
        self.setText(self._word)
        self.set_kind("small")
