"""The visible keyboard focus: a 2 px outline, 2 px away from whatever has it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QTextEdit, QWidget
from shiboken6 import isValid

from app.ui import theme
from app.ui.paint import outline, painting
from app.ui.widgets.code_field import CodeField
from app.ui.widgets.overlay import Overlay

AWAY, LINE = 2, 2
OWN_SIGN = (QLineEdit, QTextEdit, Overlay, CodeField)
MOVES = frozenset({QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Hide, QEvent.Type.Show})


class FocusRing(QWidget):
    """Lies over the window and follows the focus; widgets that draw their own focus are left alone."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._followed: list[QWidget] = []
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        QApplication.instance().focusChanged.connect(self._changed)  # pyright: ignore

    def _changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        for widget in filter(isValid, self._followed):
            widget.removeEventFilter(self)
        self._followed = []
        if now is None or isinstance(now, OWN_SIGN) or not self._window.isAncestorOf(now):
            self.hide()
            return
        self._follow(now)
        self._place()

    def _follow(self, widget: QWidget) -> None:
        above: QWidget | None = widget
        while above is not None and above is not self._window:
            self._followed.append(above)
            above.installEventFilter(self)
            above = above.parentWidget()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in MOVES:
            self._place()
        return False

    def _place(self) -> None:
        if not self._followed or not isValid(self._followed[0]):
            self.hide()
            return
        focused = self._followed[0]
        self.setVisible(focused.isVisible())
        margin = AWAY + LINE
        corner = focused.mapTo(self._window, QPoint(-margin, -margin))
        self.setGeometry(corner.x(), corner.y(), focused.width() + 2 * margin, focused.height() + 2 * margin)
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        box = QRectF(self.rect())
        radius = min(box.height() / 2, theme.px(theme.CONTROL) / 2 + AWAY + LINE)
        with painting(self) as painter:
            outline(painter, box, theme.palette().accent, radius, LINE)
