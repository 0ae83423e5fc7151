"""A model file dropped on the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QDragEnterEvent, QDragMoveEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui import theme
from app.ui.fonts import font
from app.ui.paint import CENTRE, fill, painting, write

SUFFIX = ".gguf"
WORDS = "Drop it to see what is in it"
INSET, HIGH = 20, 96


def model_file(mime: QMimeData) -> Path | None:
    """The first model file of what is dragged; None for anything else."""
    paths = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
    return next((path for path in paths if path.suffix.lower() == SUFFIX), None)


class DropHint(QWidget):
    """Lies over the window while a model file is held above it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(WORDS)

    def appear(self) -> None:
        self.setGeometry(self._over.rect())
        self.show()
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, inset = theme.palette(), theme.px(INSET)
        box = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        high = theme.px(HIGH)
        with painting(self) as painter:
            painter.fillRect(self.rect(), QColor(palette.scrim))
            _dashed(painter, box, palette.accent)
            middle = QRectF(box.left(), box.center().y() - high / 2, box.width(), high)
            card = QRectF(middle.center().x() - theme.px(180), middle.top(), theme.px(360), high)
            fill(painter, card, palette.card, theme.CARD_RADIUS)
            write(painter, middle, WORDS, font(theme.HEAD, 600), palette.ink, CENTRE)


def _dashed(painter: QPainter, box: QRectF, colour: str) -> None:
    painter.setPen(QPen(QColor(colour), 2, Qt.PenStyle.DashLine))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(box, theme.CARD_RADIUS, theme.CARD_RADIUS)
    painter.setPen(Qt.PenStyle.NoPen)


class FileDrop(QObject):
    """Watches ``window``; ``dropped`` gives the path of a model file."""

    dropped = Signal(object)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._hint: DropHint | None = None
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QDragEnterEvent | QDragMoveEvent):
            if model_file(event.mimeData()) is None:
                return False
            event.acceptProposedAction()
            self._show()
            return True
        if event.type() == QEvent.Type.DragLeave:
            self._hide()
        elif isinstance(event, QDropEvent) and (path := model_file(event.mimeData())) is not None:
            event.acceptProposedAction()
            self._hide()
            self.dropped.emit(path)
            return True
        return False

    def _show(self) -> None:
        if self._hint is None:
            self._hint = DropHint(self._window)
            self._hint.appear()

    def _hide(self) -> None:
        if self._hint is not None:
            self._hint.hide()
            self._hint.deleteLater()
            self._hint = None
