"""Text without the white space around it, as it comes."""

from __future__ import annotations

import re

BLANK_LINES = re.compile(r"\A\s*\n")
SEPARATORS = " \t\r\n;,"


class Trimmed:
    """Blank lines at the start never show; white space at the end is held back until more follows it."""

    def __init__(self) -> None:
        self._held = ""
        self._blanks: str | None = None
        self._begun = False
        self._ever = False

    def add(self, text: str) -> str:
        """The text that may be shown now."""
        text = self._held + text
        if not text.strip(None if self._begun else self._blanks):
            self._held = text
            return ""
        shown = text.rstrip()
        self._held = text[len(shown) :]
        first, self._begun, self._ever = not self._ever, True, True
        return BLANK_LINES.sub("", shown) if first else shown

    def part(self, blanks: str | None = None) -> str:
        """Something else follows; gives what was held back. ``blanks``: signs that say nothing when they are all
        that comes next."""
        held, self._held = self._held, ""
        self._blanks, self._begun = blanks, False
        return held

    def end(self) -> str:
        """White space that ended a text is part of it."""
        held, self._held = self._held, ""
        return held if self._begun else ""
