"""This device's name, with a button for another one."""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLineEdit, QWidget

from app.core.animals import random_name
from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.button import round_button
from app.ui.widgets.row import row

LONGEST = 20


class NameField(QWidget):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._edit = QLineEdit(name)
        self._edit.setMaxLength(LONGEST)
        self._edit.setFont(font(theme.BODY, 500))
        self._edit.setAccessibleName("What this computer is called")
        self._edit.textChanged.connect(self._fit)
        self.shuffle = round_button("shuffle", "Another name", self._another)
        self.setLayout(row(self._edit, self.shuffle, spacing=6))
        self._fit()

    @property
    def name(self) -> str:
        """Never empty: a cleared field gets a name of ours."""
        typed = self._edit.text().strip()
        if not typed:
            typed = random_name()
            self._edit.setText(typed)
        return typed

    def _another(self) -> None:
        self._edit.setText(random_name(self._edit.text()))

    def _fit(self) -> None:
        needed = QFontMetrics(self._edit.font()).horizontalAdvance(self._edit.text() + "  ") + theme.px(36)
        self._edit.setFixedWidth(min(max(needed, theme.px(96)), theme.px(190)))
