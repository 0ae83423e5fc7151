"""The two families of the window, and fonts of the theme's sizes."""

from __future__ import annotations

import logging

from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication

from app.core.paths import resources_dir
from app.ui import theme

log = logging.getLogger(__name__)

SANS, MONO = "Inter", "JetBrains Mono"
POINTS_PER_INCH = 72


def load_fonts() -> None:
    """Makes the shipped families known; without them the system's own are used."""
    for file in sorted((resources_dir() / "fonts").glob("*/*.woff2")):
        if QFontDatabase.addApplicationFont(str(file)) < 0:
            log.warning("the font %s cannot be read", file.name)


def font(size: float = theme.BODY, weight: int = 400, *, mono: bool = False) -> QFont:
    """``size`` in pixels at 100 % text."""
    made = QFont(MONO if mono else SANS)
    made.setStyleHint(QFont.StyleHint.Monospace if mono else QFont.StyleHint.SansSerif)
    made.setPointSizeF(points(size))
    made.setWeight(QFont.Weight(weight))
    if not mono:
        made.setFeature(QFont.Tag("tnum"), 1)
    return made


def points(size: float) -> float:
    """Pixels at 100 % text as points, which alone may be fractions."""
    screen = QGuiApplication.primaryScreen()
    dpi = screen.logicalDotsPerInchY()
    return size * theme.current().scale * POINTS_PER_INCH / dpi
