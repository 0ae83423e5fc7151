"""The look as values: colours, sizes, motion. Every widget paints from ``theme.current()``."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

from PySide6.QtGui import QColor

TINY, SMALL, BODY, HEAD, TITLE, DISPLAY = 12.5, 13.0, 14.0, 17.0, 20.0, 32.0
GUTTER = 28
HEADER = 56
CONTROL = 34
CARD_RADIUS = 14
WIDE, MEDIUM = 1080, 760
"""From these widths up, at 100 % text: three columns; two."""
GOLDEN = 0.618033988749895


@dataclass(frozen=True)
class Palette:
    """Colours by what they are for."""

    page: str
    card: str
    code: str
    line: str
    empty: str
    ink: str
    soft: str
    muted: str
    accent: str
    tint: str
    on_accent: str
    good: str
    bad: str
    scrim: str
    shadow: str
    devices: tuple[str, ...]


LIGHT = Palette(
    page="#F6F5F1",
    card="#FFFFFF",
    code="#F1EFE8",
    line="#E4E2DA",
    empty="#D9D6CC",
    ink="#14161D",
    soft="#4B4E58",
    muted="#6A6D78",
    accent="#2A45E0",
    tint="#EAEDFE",
    on_accent="#FFFFFF",
    good="#1A7F37",
    bad="#B42318",
    scrim="#4814161D",
    shadow="#0714161D",
    devices=(
        *("#2A45E0", "#0E8F8A", "#B4459C", "#B8501A", "#5B7F1B", "#7A4BD1", "#1479B8", "#A3324F"),
        *("#3F7D52", "#8A6A14", "#C2507A", "#4A5B8C", "#8D5A3B", "#9A3FC0", "#D0455B", "#5F6672"),
    ),
)
DARK = Palette(
    page="#111318",
    card="#191C23",
    code="#12141A",
    line="#2A2E38",
    empty="#343946",
    ink="#ECEDF1",
    soft="#B9BCC6",
    muted="#8B8F9B",
    accent="#7F93FF",
    tint="#232A4D",
    on_accent="#0E1016",
    good="#5BC27A",
    bad="#FF8A7A",
    scrim="#A0000000",
    shadow="#18000000",
    devices=(
        *("#7F93FF", "#4FC9C1", "#E08BCB", "#F0A070", "#A9CC5F", "#B79BFF", "#67BDF0", "#F08AA0"),
        *("#7FC793", "#D9BB63", "#F5A0C0", "#9DB0E0", "#D2A384", "#D08BF5", "#FF9C9C", "#AEB6C4"),
    ),
)


@dataclass(frozen=True)
class Theme:
    """``scale`` is the text size, 1.0 to 2.0; ``motion`` False where the person asked for less of it."""

    palette: Palette = LIGHT
    scale: float = 1.0
    motion: bool = True

    @property
    def dark(self) -> bool:
        return self.palette is DARK

    def px(self, at_full_size: float) -> int:
        """A length that grows with the text."""
        return round(at_full_size * self.scale)

    def device(self, index: int | None) -> QColor:
        """A device's colour; grey for a device without one. Past the palette, hues are generated."""
        if index is None:
            return QColor(self.palette.muted)
        if index < len(self.palette.devices):
            return QColor(self.palette.devices[index])
        hue = (index * GOLDEN) % 1.0
        lightness = 0.72 if self.dark else 0.40
        return QColor.fromRgbF(*colorsys.hls_to_rgb(hue, lightness, 0.55))


class _Holder:
    theme = Theme()


def current() -> Theme:
    return _Holder.theme


def use(theme: Theme) -> None:
    """Widgets made from now on look like this; the window rebuilds those it has."""
    _Holder.theme = theme


def palette() -> Palette:
    return current().palette


def px(at_full_size: float) -> int:
    return current().px(at_full_size)
