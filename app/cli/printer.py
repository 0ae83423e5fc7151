"""Whole lines, a streamed answer and the prompt on one terminal, without one running into the other."""

from __future__ import annotations

import contextlib

from rich.console import Console
from rich.text import Text

from app.cli.text import safe

ACCENT = "accent"
QUIET = "dim"
PROMPT = "> "
_CLEAR_LINE = "\r\x1b[K"


class Printer:
    """``interactive`` shows the prompt between lines; without a terminal there is none.

    ``quiet`` leaves out whole lines of the style QUIET.
    """

    def __init__(self, console: Console, *, interactive: bool, quiet: bool = False) -> None:
        self.console = console
        self._prompts = interactive and console.is_terminal
        self._quiet = quiet
        self._prompt_shown = False
        self._status_shown = False
        self._line_open = False

    def line(self, text: str = "", style: str = "") -> None:
        if self._quiet and style == QUIET:
            return
        self._clean_line()
        self._print(text, style, "\n")

    def status(self, text: str) -> None:
        """A line that the next one takes the place of; only on a terminal that can take it back."""
        if not self.console.is_terminal or self.console.is_dumb_terminal or self._line_open:
            return
        self._clean_line()
        shown = Text(text)
        shown.truncate(max(1, self.console.width - 1))
        self._print(shown.plain, QUIET, "")
        self._status_shown = True

    def stream(self, text: str, style: str = "") -> None:
        """Part of a line that goes on."""
        if not text:
            return
        if not self._line_open:
            self._clean_line()
        self._print(text, style, "")
        self._line_open = not text.endswith("\n")

    def prompt(self) -> None:
        """Shown only while nothing streams."""
        if self._prompts and not self._prompt_shown and not self._line_open:
            self._print(PROMPT, ACCENT, "")
            self._prompt_shown = True

    def typed(self) -> None:
        """The person has pressed Enter: the cursor stands on a new line."""
        self._prompt_shown = self._line_open = False

    def end(self) -> None:
        """The terminal may be gone already."""
        with contextlib.suppress(OSError):
            self._clean_line()

    def _clean_line(self) -> None:
        if self._line_open:
            self._print("", "", "\n")
        elif self._prompt_shown or self._status_shown:
            # What was typed so far is gone from sight but still counts; dumb terminals get a new line.
            self.console.file.write("\n" if self.console.is_dumb_terminal else _CLEAR_LINE)
        self._line_open = self._prompt_shown = self._status_shown = False

    def _print(self, text: str, style: str, end: str) -> None:
        self.console.print(Text(safe(text), style), end=end, soft_wrap=True, highlight=False)
        self.console.file.flush()
