"""Settings for the programs people use, ready to paste, one tab each."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.serve.settings_for_tools import ToolSettings, settings_for_tools
from app.ui import theme
from app.ui.api_view import ApiView
from app.ui.markdown import Block
from app.ui.widgets.card import column, rule
from app.ui.widgets.code_block import CodeBlock
from app.ui.widgets.slices import Slices
from app.ui.widgets.tabs import Tabs
from app.ui.widgets.text import label

LANGUAGES = {
    "OpenAI for Python": "python",
    "OpenAI for JavaScript": "javascript",
    "Anthropic for Python": "python",
    "Codex": "toml",
    "opencode": "json",
    "Continue": "yaml",
    "LiteLLM": "yaml",
}
SHELL = "bash"
NOT_ON = "Once it is on, this shows what to paste into your program."
NO_MODEL = "Start a model to see what to paste into your program: the settings hold its name and size."


class ApiTools(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._slices = Slices(self)
        self._settings: tuple[ToolSettings, ...] = ()
        self._shown: ToolSettings | None = None
        self._code: CodeBlock | None = None
        self.tabs: Tabs | None = None
        self.tool = ""
        self._none = label("", theme.SMALL, 400, "muted", wrap=True)
        self._where = label("", theme.SMALL, 400, "muted", wrap=True)
        self._lines = column(self, 10)
        self._lines.addWidget(rule())
        self._lines.addWidget(label("Settings for your program", theme.SMALL, 600, "muted"))
        self._lines.addWidget(self._none)
        self._lines.addWidget(self._where)

    def display(self, view: ApiView) -> None:
        address = view.address
        self._none.setText(NO_MODEL if view.listening else NOT_ON)
        self._none.setVisible(address is None)
        settings = settings_for_tools(address) if address is not None else ()
        if settings != self._settings:
            self._settings = settings
            self._show()

    def choose(self, tool: str) -> None:
        self.tool = tool
        self._show()

    def _show(self) -> None:
        shown = next((each for each in self._settings if each.tool == self.tool), None)
        shown = shown or next(iter(self._settings), None)
        self._where.setVisible(shown is not None)
        for part in (self.tabs, self._code):
            if part is not None:
                part.setVisible(shown is not None)
        if shown is not None:
            self._show_tabs(shown.tool)
            self._where.setText(f"Goes into {shown.where}.")
            self._show_code(shown)

    def _show_tabs(self, tool: str) -> None:
        if self.tabs is None:
            self.tabs = Tabs([each.tool for each in self._settings], "Program")
            self.tabs.chosen.connect(self.choose)
            self._lines.insertWidget(self._lines.indexOf(self._where), self.tabs)
        self.tabs.set_choice(tool)

    def _show_code(self, shown: ToolSettings) -> None:
        """A new block each time: colours of the old text may still be on their way."""
        if shown == self._shown:
            return
        self._shown = shown
        if self._code is not None:
            self._slices.clear()
            self._code.hide()
            self._code.deleteLater()
        self._code = CodeBlock(self._slices)
        self._code.display(Block(shown.text.rstrip("\n"), True, LANGUAGES.get(shown.tool, SHELL)), complete=True)
        self._lines.addWidget(self._code)
