"""One model of the picker: a radio button with what it needs and whether it fits."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QRadioButton, QSizePolicy

from app.room.state import ModelRow
from app.ui import theme, words
from app.ui.fonts import font
from app.ui.paint import LEFT, RIGHT, dot, fill, outline, painting, width_of, write

ROW, TWO_LINES, LINE, BREAK = 50, 74, 22, 560
NEED_AT, VERDICT_AT = 0.637, 0.772


def where_from(model: ModelRow) -> str:
    if model.on_disk:
        return "starter, on disk" if model.starter else "on disk"
    return f"{words.size(model.download_bytes)} to fetch"


def help_words(model: ModelRow) -> str:
    """Who could close the gap."""
    if model.fits or not model.short_gb:
        return ""
    if model.own_raise_gb is not None:
        return f"Lend {words.gb(model.own_raise_gb)} from this device and it fits."
    if model.helpers:
        return f"{words.names(model.helpers)} could lend {words.gb(model.short_gb)} more."
    return "Bring another device to make room."


def below_words(model: ModelRow) -> str:
    """The line under a chosen model: who could close the gap, or how fast it should be."""
    return help_words(model) or model.speed


class ModelOption(QRadioButton):
    def __init__(self, model: ModelRow) -> None:
        super().__init__()
        self.model = model
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.display(model)

    def display(self, model: ModelRow) -> None:
        self.model = model
        self.setAccessibleName(f"{model.label}, needs {words.gb(model.need_gb)}, {model.sentence}")
        self.setAccessibleDescription(below_words(model))
        self.updateGeometry()
        self.update()

    def hitButton(self, pos: object) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return True

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if not self._narrow(width):
            return theme.px(TWO_LINES if self._more else ROW)
        return theme.px(TWO_LINES + LINE if self._more and self.model.fits else TWO_LINES)

    @property
    def _more(self) -> bool:
        return self.isChecked() and bool(below_words(self.model))

    def _narrow(self, width: int) -> bool:
        return width < theme.px(BREAK)

    def sizeHint(self) -> QSize:
        width = max(self.width(), theme.px(240))
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(theme.px(240), theme.px(ROW))

    def resizeEvent(self, event: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.updateGeometry()

    def nextCheckState(self) -> None:
        super().nextCheckState()
        self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect())
        with painting(self) as painter:
            chosen = self.isChecked()
            back = palette.tint if chosen else (palette.code if self.underMouse() else palette.card)
            fill(painter, box, back, 10)
            outline(painter, box, palette.accent if chosen else palette.line, 10)
            self._circle(painter, theme.px(ROW) / 2)
            (self._two_lines if self._narrow(self.width()) else self._one_line)(painter, box)

    def _circle(self, painter: QPainter, y: float) -> None:
        palette, x, radius = theme.palette(), theme.px(24), theme.px(8)
        around = QRectF(x - radius, y - radius, 2 * radius, 2 * radius)
        if self.isChecked():
            dot(painter, QPointF(x, y), radius, palette.accent)
            dot(painter, QPointF(x, y), radius * 0.38, palette.card)
        else:
            outline(painter, around, palette.muted, radius, 1.2)

    def _one_line(self, painter: QPainter, box: QRectF) -> None:
        palette, high = theme.palette(), theme.px(ROW)
        left, need, verdict = theme.px(48), box.width() * NEED_AT, box.width() * VERDICT_AT
        self._label(painter, QRectF(left, 0, need - left - 8, high))
        need_box = QRectF(need, 0, verdict - need - 8, high)
        write(painter, need_box, words.gb(self.model.need_gb), font(), palette.muted)
        self._verdict(painter, QRectF(verdict, 0, box.right() - verdict - theme.px(12), high), LEFT)
        if self._more:
            self._below(painter, QRectF(left, high - theme.px(10), box.right() - left - theme.px(16), theme.px(24)))

    def _two_lines(self, painter: QPainter, box: QRectF) -> None:
        palette, left, right = theme.palette(), theme.px(48), box.right() - theme.px(16)
        top = QRectF(left, theme.px(2), right - left, theme.px(ROW) - theme.px(6))
        need = words.gb(self.model.need_gb)
        room = width_of(need, font()) + 12
        self._label(painter, top.adjusted(0, 0, -room, 0))
        write(painter, top, need, font(), palette.muted, RIGHT)
        below = QRectF(left, theme.px(38), right - left, theme.px(24))
        if self.model.fits or not self._more:
            self._verdict(painter, below, LEFT)
            below.translate(0, theme.px(LINE))
        if self._more:
            self._below(painter, below)

    def _below(self, painter: QPainter, box: QRectF) -> None:
        write(painter, box, below_words(self.model), font(theme.SMALL), theme.palette().soft)

    def _label(self, painter: QPainter, box: QRectF) -> None:
        weight = 600 if self.isChecked() else 400
        taken = write(painter, box, self.model.label, font(weight=weight), theme.palette().ink)
        rest = box.adjusted(taken, 0, 0, 0)
        write(painter, rest, f"  ·  {where_from(self.model)}", font(theme.SMALL), theme.palette().muted)

    def _verdict(self, painter: QPainter, box: QRectF, where: Qt.AlignmentFlag) -> None:
        colour = theme.palette().good if self.model.fits else theme.palette().muted
        write(painter, box, self.model.sentence, font(), colour, where)
