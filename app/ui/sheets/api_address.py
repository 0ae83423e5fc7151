"""Where programs reach the API."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.serve.config import root_url
from app.ui import theme
from app.ui.widgets.card import column, rule
from app.ui.widgets.copy_button import CopyButton
from app.ui.widgets.text import code_label, label

APIS = (("OpenAI", "/v1"), ("Anthropic", ""))


class ApiAddress(QWidget):
    """A base URL for each kind of API, with Copy."""

    def __init__(self) -> None:
        super().__init__()
        lines = column(self, 8)
        lines.addWidget(rule())
        lines.addWidget(label("Base URLs", theme.SMALL, 600, "muted"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.px(12))
        grid.setVerticalSpacing(theme.px(6))
        grid.setColumnStretch(1, 1)
        self.urls: list[tuple[str, QLabel, CopyButton]] = []
        for i, (name, path) in enumerate(APIS):
            url, copy = code_label("", theme.SMALL), CopyButton(kind="small", name=f"Copy the base URL for {name}")
            url.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            for at, part in enumerate((label(name, tone="soft"), url, copy)):
                grid.addWidget(part, i, at)
            self.urls.append((path, url, copy))
        lines.addLayout(grid)

    def display(self, port: int) -> None:
        """``port`` 0: nothing listens."""
        self.setVisible(port > 0)
        for path, url, copy in self.urls:
            copy.copies = f"{root_url(port)}{path}"
            url.setText(copy.copies)
