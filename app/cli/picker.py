"""A choice of one line among several: a value that keys move, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.console import Group
from rich.text import Text

from app.cli.printer import ACCENT, QUIET
from app.cli.text import safe


@dataclass(frozen=True)
class Item:
    """``wrong`` says why it cannot be chosen."""

    label: str
    note: str = ""
    wrong: str = ""


@dataclass(frozen=True)
class Picker:
    """``chosen`` is the index once Enter or a number was pressed; ``left`` after Esc or q. It does not wrap."""

    title: str
    items: tuple[Item, ...]
    at: int = 0
    chosen: int | None = None
    left: bool = False
    why: str = ""

    def press(self, key: str) -> Picker:
        last = len(self.items) - 1
        match key:
            case "up" | "k":
                return replace(self, at=max(0, self.at - 1), why="")
            case "down" | "j":
                return replace(self, at=min(last, self.at + 1), why="")
            case "enter":
                return self._take(self.at)
            case "escape" | "q" | "end":
                return replace(self, left=True)
            case _ if key.isascii() and key.isdecimal() and 1 <= int(key) <= len(self.items):
                return self._take(int(key) - 1)
            case _:
                return self

    def _take(self, at: int) -> Picker:
        wrong = self.items[at].wrong
        return replace(self, at=at, why=wrong) if wrong else replace(self, at=at, chosen=at, why="")

    def draw(self, *, ascii_only: bool = False) -> Group:
        """A line an item; the marked one in the accent."""
        mark = ">" if ascii_only else "›"
        width = max(len(item.label) for item in self.items)
        lines = [Text(self.title, "bold")]
        for i, item in enumerate(self.items):
            style = ACCENT if i == self.at else QUIET if item.wrong else ""
            start = f"{mark if i == self.at else ' '} {i + 1} "
            lines.append(Text(f"{start}{safe(item.label):<{width}}  {safe(item.wrong or item.note)}".rstrip(), style))
        lines.append(Text(safe(self.why), "bold") if self.why else Text("Up, Down and Enter, or a number", QUIET))
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)
