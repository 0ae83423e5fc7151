"""A sheet over the window: what is behind is dimmed, Tab stays inside, Esc closes, focus returns."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QVBoxLayout, QWidget
from shiboken6 import isValid

from app.ui import theme
from app.ui.widgets.button import round_button
from app.ui.widgets.card import Card
from app.ui.widgets.row import row
from app.ui.widgets.text import label

MARGIN, PADDING = 16, 24


class Overlay(QWidget):
    """Covers ``parent``. ``closable`` False: only a button of the content ends it.

    With an ``anchor`` the card hangs below that widget and nothing is dimmed.
    """

    closed = Signal()

    def __init__(
        self,
        parent: QWidget,
        content: QWidget,
        title: str,
        width: int,
        *,
        closable: bool = True,
        anchor: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._over = parent
        self._anchor = anchor
        self.content = content
        self._closable = closable
        self._wanted = width
        self._return_to = QApplication.focusWidget()
        self.setAccessibleName(title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._card = self._framed(content, title)
        parent.installEventFilter(self)
        self._inner.installEventFilter(self)
        self._cover()

    def _framed(self, content: QWidget, title: str) -> Card:
        card = Card(padding=0, spacing=0)
        if self._closable:
            head = row(label(title, theme.HEAD, 600), None, round_button("close", "Close", self.dismiss))
            head.setContentsMargins(theme.px(PADDING), theme.px(18), theme.px(18), 0)
            card.column.addLayout(head)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidgetResizable(True)
        self._scroll = scroll
        self._inner = _padded(content, bottom=24, top=12 if self._closable else 24)
        scroll.setWidget(self._inner)
        scroll.viewport().setAutoFillBackground(False)
        card.column.addWidget(scroll)
        card.setParent(self)
        return card

    def open(self) -> None:
        self.show()
        self.raise_()
        self.fit()
        # No button gets the focus by itself: somebody may be typing when a sheet comes up.
        self.setFocus(Qt.FocusReason.PopupFocusReason)

    def fit(self) -> None:
        """As high as its content, within the window."""
        width = min(theme.px(self._wanted), self.width() - 2 * MARGIN)
        self.content.setMaximumWidth(max(0, width - 2 * theme.px(PADDING)))
        inner = self._inner
        needed = inner.heightForWidth(width) if inner.hasHeightForWidth() else inner.sizeHint().height()
        head = theme.px(18) + theme.px(30) if self._closable else 0
        height = min(needed + head + 8, self.height() - 2 * MARGIN)
        self._card.setGeometry(QRect(self._corner(width, height), QSize(width, height)))

    def _corner(self, width: int, height: int) -> QPoint:
        if self._anchor is None:
            return QPoint((self.width() - width) // 2, max(MARGIN, int((self.height() - height) * 0.42)))
        below = self._anchor.mapTo(self._over, QPoint(0, self._anchor.height() + 8))
        left = min(below.x(), self.width() - width - MARGIN)
        return QPoint(max(MARGIN, left), min(below.y(), self.height() - height - MARGIN))

    def dismiss(self) -> None:
        self._over.removeEventFilter(self)
        self.hide()
        if self._return_to is not None and isValid(self._return_to) and self._return_to.isVisible():
            self._return_to.setFocus(Qt.FocusReason.TabFocusReason)
        self.closed.emit()
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._over and event.type() == QEvent.Type.Resize:
            self._cover()
        elif watched is self._inner and event.type() == QEvent.Type.LayoutRequest:
            self.fit()
        return False

    def _cover(self) -> None:
        self.setGeometry(self._over.rect())
        self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._closable:
            self.dismiss()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._closable and not self._card.geometry().contains(event.pos()):
            self.dismiss()

    def focusNextPrevChild(self, next: bool) -> bool:
        chain = self._chain()
        if not chain:
            return True
        focused = QApplication.focusWidget()
        at = chain.index(focused) if focused in chain else (-1 if next else 0)
        wanted = chain[(at + (1 if next else -1)) % len(chain)]
        wanted.setFocus(Qt.FocusReason.TabFocusReason if next else Qt.FocusReason.BacktabFocusReason)
        if self._inner.isAncestorOf(wanted):
            self._scroll.ensureWidgetVisible(wanted)
        return True

    def _chain(self) -> list[QWidget]:
        """What Tab reaches inside, in order."""
        found: list[QWidget] = []
        widget = self.nextInFocusChain()
        while widget is not None and widget is not self:
            takes = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if self.isAncestorOf(widget) and takes and widget.isVisibleTo(self) and widget.isEnabled():
                found.append(widget)
            widget = widget.nextInFocusChain()
        return found

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._anchor is not None:
            return
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(theme.palette().scrim))
        painter.end()


def _padded(content: QWidget, *, top: int, bottom: int) -> QWidget:
    frame = QWidget()
    frame.setObjectName("clear")
    around = QVBoxLayout(frame)
    around.setContentsMargins(theme.px(PADDING), theme.px(top), theme.px(PADDING), theme.px(bottom))
    around.addWidget(content)
    return frame
