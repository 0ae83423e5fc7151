"""How much memory to lend: minus, an editable number, plus."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.ui import theme, words
from app.ui.fonts import font
from app.ui.widgets.button import round_button
from app.ui.widgets.row import row


class _Number(QLineEdit):
    """Enter applies, Escape restores, arrow keys step."""

    stepped = Signal(int)
    restored = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Up:
                self.stepped.emit(1)
            case Qt.Key.Key_Down:
                self.stepped.emit(-1)
            case Qt.Key.Key_Escape if self.isModified():
                self.restored.emit()
            case _:
                super().keyPressEvent(event)


class Stepper(QWidget):
    """GB between ``smallest`` and ``largest``; typed values are brought into that range."""

    changed = Signal(float)

    def __init__(self, smallest: float, largest: float, step: float = 1.0, name: str = "Memory to lend, in GB") -> None:
        super().__init__()
        self._range, self._step = (smallest, largest), step
        self.value = smallest
        self._number = _Number()
        self._number.setFixedWidth(theme.px(84))
        self._number.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._number.setFont(font(theme.BODY, 500))
        self._number.setAccessibleName(name)
        self._less = round_button("minus", "Lend less", lambda: self._by(-1))
        self._more = round_button("plus", "Lend more", lambda: self._by(1))
        self._number.stepped.connect(self._by)
        self._number.restored.connect(self._show)
        self._number.editingFinished.connect(self._typed)
        self.setLayout(row(self._less, self._number, self._more, spacing=6))
        self._show()

    def set_value(self, gb: float) -> None:
        """Shows another value without telling anybody."""
        if gb != self.value:
            self.value = self._within(gb)
            self._show()

    def _within(self, gb: float) -> float:
        low, high = self._range
        return min(max(round(gb / self._step) * self._step, low), high)

    def _by(self, steps: int) -> None:
        self._apply(self.value + steps * self._step)

    def _typed(self) -> None:
        digits = "".join(c for c in self._number.text().replace(",", ".") if c.isdigit() or c == ".")
        try:
            self._apply(float(digits))
        except ValueError:
            self._show()

    def _apply(self, gb: float) -> None:
        before, self.value = self.value, self._within(gb)
        self._show()
        if self.value != before:
            self.changed.emit(self.value)

    def _show(self) -> None:
        self._number.setText(words.gb(self.value))
        self._number.setModified(False)
        low, high = self._range
        self._less.setEnabled(self.value > low)
        self._more.setEnabled(self.value < high)
