"""Short notices at the foot of the window. The room takes them away when their time is over."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from app.room.intents import DismissNotice
from app.room.state import Notice, NoticeKind
from app.ui import theme
from app.ui.paint import fill, outline, painting
from app.ui.widgets.button import round_button
from app.ui.widgets.row import row
from app.ui.widgets.text import label

WIDTH, MARGIN = 420, 16
TONES = {NoticeKind.INFO: "", NoticeKind.GOOD: "good", NoticeKind.BAD: "bad"}
LEADS = {NoticeKind.INFO: "", NoticeKind.GOOD: "Done. ", NoticeKind.BAD: "Problem. "}


class Toast(QFrame):
    dismissed = Signal()

    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self.notice = notice
        text = label(notice.text, theme.SMALL, 500, TONES[notice.kind], wrap=True)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(text)
        if notice.remedy:
            words.addWidget(label(notice.remedy, theme.SMALL, 400, "soft", wrap=True))
        line = row(spacing=8)
        line.addLayout(words, 1)
        line.addWidget(round_button("close", "Dismiss", self.dismissed.emit), 0, Qt.AlignmentFlag.AlignTop)
        line.setContentsMargins(theme.px(16), theme.px(10), theme.px(10), theme.px(10))
        self.setLayout(line)
        self.setAccessibleName(f"{LEADS[notice.kind]}{notice.text} {notice.remedy}".strip())

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, box = theme.palette(), QRectF(self.rect()).adjusted(0, 0, 0, -3)
        with painting(self) as painter:
            for spread in (3, 2, 1):
                fill(painter, box.adjusted(0, spread, 0, spread), palette.shadow, 12)
            fill(painter, box, palette.card, 12)
            outline(painter, box, palette.line, 12)
            if self.notice.kind is not NoticeKind.INFO:
                side = palette.bad if self.notice.kind is NoticeKind.BAD else palette.good
                fill(painter, QRectF(6, 12, 3, box.height() - 24), side, 1.5)


class Toasts(QWidget):
    intent = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = parent
        self.setAccessibleName("Notices")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._shown: dict[int, Toast] = {}
        self._lines = QVBoxLayout(self)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(theme.px(8))
        self._lift = MARGIN
        parent.installEventFilter(self)

    def display(self, notices: tuple[Notice, ...]) -> None:
        wanted = {notice.id for notice in notices}
        for id in self._shown.keys() - wanted:
            gone = self._shown.pop(id)
            gone.hide()
            gone.deleteLater()
        for notice in notices:
            if notice.id not in self._shown:
                self._add(notice)
        self.place()

    def _add(self, notice: Notice) -> None:
        toast = Toast(notice)
        toast.dismissed.connect(lambda: self.intent.emit(DismissNotice(notice.id)))
        self._lines.addWidget(toast)
        self._shown[notice.id] = toast
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, toast.accessibleName()))

    def lift(self, above: int) -> None:
        """Stays that many pixels above the window's lower edge."""
        self._lift = above + MARGIN
        self.place()

    def place(self) -> None:
        parent = self._over
        self.setVisible(bool(self._shown))
        if not self._shown:
            return
        width = min(theme.px(WIDTH), parent.width() - 2 * MARGIN)
        height = max(self._lines.totalHeightForWidth(width), self._lines.minimumSize().height())
        self.setGeometry((parent.width() - width) // 2, parent.height() - height - self._lift, width, height)
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.place()
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.place()
