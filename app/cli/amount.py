"""How much to lend, chosen with arrows or typed (spec: product §4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.text import Text

from app.cli.printer import ACCENT
from app.cli.text import gb_text

STEP_GB = 1.0
LONGEST = 6


@dataclass(frozen=True)
class Amount:
    """GB from ``least`` to ``most``. ``typed`` is what stands there; ``done`` after Enter, ``left`` after Esc."""

    gb: float
    most: float
    least: float = 1.0
    typed: str = ""
    done: bool = False
    left: bool = False
    notice: str = ""

    def press(self, key: str) -> Amount:
        match key:
            case "right" | "up" | "+":
                return self._at(self.gb + STEP_GB)
            case "left" | "down" | "-":
                return self._at(self.gb - STEP_GB)
            case "enter":
                return replace(self._at(self._number()), done=True)
            case "escape" | "q" | "end":
                return replace(self, left=True)
            case "backspace":
                return replace(self, typed=self.typed[:-1])
            case _ if key in "0123456789." and len(self.typed) < LONGEST:
                return replace(self, typed=self.typed + key)
            case _:
                return self

    def _number(self) -> float:
        try:
            return float(self.typed) if self.typed else self.gb
        except ValueError:
            return self.gb

    def _at(self, gb: float) -> Amount:
        within = min(max(gb, self.least), max(self.least, self.most))
        notice = "" if within == gb else f"From {gb_text(self.least)} to {gb_text(self.most)} can be lent here."
        return replace(self, gb=within, typed="", notice=notice)

    def draw(self) -> Text:
        shown = f"{self.typed} GB" if self.typed else gb_text(self.gb)
        line = Text.assemble("Lend ", (f"< {shown} >", ACCENT), f" of {gb_text(self.most)}, Enter takes it")
        return line.append(f"\n{self.notice}", "bold") if self.notice else line
