"""Where the time of one word goes: a bar for each device and each way between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.room.state import Device
from app.ui import theme, words
from app.ui.fonts import font
from app.ui.paint import fill, painting, write

LINE, BAR = 19, 8


@dataclass(frozen=True)
class Hop:
    """``colour`` None: the way between two devices."""

    name: str
    ms: float
    colour: int | None = None
    wire: bool = False


def hops(devices: Sequence[Device]) -> tuple[Hop, ...]:
    """In chain order: each device, then the way on from it."""
    chain = sorted((d for d in devices if d.layers and d.ms is not None), key=lambda d: d.layers or (0, 0))
    made: list[Hop] = []
    for device in chain:
        made.append(Hop(device.name, device.ms or 0.0, device.colour))
        if device.wire_ms is not None and len(chain) > 1:
            made.append(Hop("wire", device.wire_ms, wire=True))
    return tuple(made)


class HopBars(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._hops: tuple[Hop, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def display(self, shown: tuple[Hop, ...]) -> None:
        if shown != self._hops:
            self._hops = shown
            self.setAccessibleName("; ".join(f"{hop.name} {words.ms(hop.ms)}" for hop in shown))
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme.px(200), theme.px(LINE) * len(self._hops))

    def paintEvent(self, event: QPaintEvent) -> None:
        look, palette = theme.current(), theme.palette()
        whole = max(sum(hop.ms for hop in self._hops), 1e-6)
        line, bar, left = look.px(LINE), look.px(BAR), look.px(92)
        room = self.width() - left - look.px(64)
        with painting(self) as painter:
            for i, hop in enumerate(self._hops):
                top = i * line
                write(painter, QRectF(0, top, left - 8, line), hop.name, font(theme.SMALL), palette.ink)
                track = QRectF(left, top + (line - bar) / 2, room, bar)
                fill(painter, track, palette.empty, bar / 2)
                colour = palette.soft if hop.wire else look.device(hop.colour)
                share = max(bar, room * hop.ms / whole)
                fill(painter, QRectF(track.left(), track.top(), share, bar), colour, bar / 2)
                figure = QRectF(track.right() + 8, top, look.px(58), line)
                write(painter, figure, words.ms(hop.ms), font(theme.SMALL), palette.ink)
