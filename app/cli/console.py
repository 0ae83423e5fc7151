"""The terminal as this program draws on it: one accent, no other colours (spec: product §4.6)."""

from __future__ import annotations

import io
import os
import shutil
import sys

from rich.console import Console
from rich.theme import Theme

ACCENT_ON_LIGHT, ACCENT_ON_DARK = "#2A45E0", "#7F93FF"
_LIGHT = frozenset({7, 15})
"""Backgrounds of COLORFGBG that are light."""


def make_console(*, stderr: bool = False, colour: bool = True) -> Console:
    """NO_COLOR and TERM are obeyed; a dumb terminal keeps its width."""
    accent = ACCENT_ON_LIGHT if is_light(os.environ.get("COLORFGBG", "")) else ACCENT_ON_DARK
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot say a letter must not end the program
    theme = Theme({"accent": f"bold {accent}", "code": f"bold white on {ACCENT_ON_LIGHT}"})
    console = Console(stderr=stderr, no_color=None if colour else True, theme=theme)
    if console.is_dumb_terminal:
        console.width, console.height = shutil.get_terminal_size()
    return console


def is_light(colours: str) -> bool:
    """Whether COLORFGBG ("foreground;background") names a light background; "" and nonsense: no."""
    background = colours.rpartition(";")[2]
    return background.isdecimal() and int(background[:3]) in _LIGHT
