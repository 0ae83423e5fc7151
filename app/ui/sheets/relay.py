"""The relay this computer uses where no direct path is let through, and how it is let in there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QSizePolicy, QWidget

from app.core.settings import RelaySettings
from app.ui import theme
from app.ui.fonts import font
from app.ui.widgets.button import Button
from app.ui.widgets.card import column
from app.ui.widgets.row import row
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.switch import Switch
from app.ui.widgets.text import label, set_tone

ABOUT = "Where networks let no direct path through, a relay (TURN) carries the room. Pooled runs none of its own."
SAVED = "Saved. It counts from the next room on."
NO_RELAY = "An address of a relay looks like turn:relay.example:3478 or turns:relay.example."
NO_ADDRESS = "An address that gives credentials begins with https://."
LONGEST = 200


class Kind(Enum):
    """Who gives the credentials."""

    NONE = "none"
    USER = "user"
    SECRET = "secret"
    ADDRESS = "address"


KINDS = {Kind.NONE: "None", Kind.USER: "User", Kind.SECRET: "Secret", Kind.ADDRESS: "Address"}
HELP = {
    Kind.NONE: "Direct paths only.",
    Kind.USER: "A user name and a password that the relay knows.",
    Kind.SECRET: "A secret shared with your own relay. Members of your rooms get credentials that last six hours.",
    Kind.ADDRESS: "An address that gives out credentials. Members of your rooms get them too.",
}


@dataclass(frozen=True)
class RelayWish:
    """What is to be kept. ``password`` and ``secret`` None: as they are; "" forgets them."""

    settings: RelaySettings
    password: str | None
    secret: str | None


class RelaySection(QWidget):
    """``wanted`` gives a ``RelayWish``."""

    wanted = Signal(object)

    def __init__(self, settings: RelaySettings) -> None:
        super().__init__()
        self.kind = Segmented(list(KINDS.items()), "Relay")
        self.url = _field("turn:relay.example:3478", "Address of the relay")
        self.user = _field("user name", "User name")
        self.password = _field("password", "Password", hidden=True)
        self.secret = _field("shared secret", "Shared secret", hidden=True)
        self.credentials = _field("https://relay.example/credentials", "Address that gives credentials")
        self.only = Switch("Only over the relay")
        self._help = label("", theme.SMALL, 400, "muted", wrap=True)
        self._says = label("", theme.SMALL, 400, "muted", wrap=True)
        self.save = Button("Save the relay", "", self._save)
        self._build()
        self._show(settings)

    def _build(self) -> None:
        lines = column(self, 8)
        lines.addWidget(label(ABOUT, theme.SMALL, 400, "muted", wrap=True))
        lines.addLayout(row(self.kind, None))
        lines.addWidget(self._help)
        for field in (self.url, self.user, self.password, self.secret, self.credentials):
            lines.addWidget(field)
        self._only_line = QWidget()
        self._only_line.setLayout(row(label("Hide this computer's address: only over the relay", wrap=True), self.only))
        lines.addWidget(self._only_line)
        lines.addWidget(self._says)
        lines.addLayout(row(self.save, None))
        self.kind.chosen.connect(self.choose)

    def _show(self, settings: RelaySettings) -> None:
        self.url.setText(settings.url)
        self.user.setText(settings.user)
        self.credentials.setText(settings.credentials)
        self.only.setChecked(settings.only)
        self.choose(_kind_of(settings))

    def choose(self, kind: object) -> None:
        assert isinstance(kind, Kind)
        self._kind = kind
        self.kind.set_choice(kind)
        self._help.setText(HELP[kind])
        self._say("")
        self.url.setVisible(kind in (Kind.USER, Kind.SECRET))
        self.user.setVisible(kind is Kind.USER)
        self.password.setVisible(kind is Kind.USER)
        self.secret.setVisible(kind is Kind.SECRET)
        self.credentials.setVisible(kind is Kind.ADDRESS)
        self._only_line.setVisible(kind is not Kind.NONE)

    def _save(self) -> None:
        from app.room.ice import Relay

        kind, url, address = self._kind, self.url.text().strip(), self.credentials.text().strip()
        if kind in (Kind.USER, Kind.SECRET) and not Relay(url).valid:
            self._say(NO_RELAY, "bad")
        elif kind is Kind.ADDRESS and not _is_web(address):
            self._say(NO_ADDRESS, "bad")
        else:
            self.wanted.emit(self._wish(kind, url, address))
            self._say(SAVED)

    def _wish(self, kind: Kind, url: str, address: str) -> RelayWish:
        """What belongs to another kind is forgotten."""
        user = self.user.text().strip()
        by_kind = {
            Kind.NONE: RelaySettings(),
            Kind.USER: RelaySettings(url, user, only=self.only.isChecked()),
            Kind.SECRET: RelaySettings(url, shared=True, only=self.only.isChecked()),
            Kind.ADDRESS: RelaySettings(credentials=address, only=self.only.isChecked()),
        }
        typed_password, typed_secret = self.password.text() or None, self.secret.text() or None
        password = typed_password if kind is Kind.USER else ""
        return RelayWish(by_kind[kind], password, typed_secret if kind is Kind.SECRET else "")

    def _say(self, text: str, tone: str = "muted") -> None:
        self._says.setText(text)
        self._says.setVisible(bool(text))
        set_tone(self._says, tone)


def _kind_of(settings: RelaySettings) -> Kind:
    if settings.credentials:
        return Kind.ADDRESS
    if not settings.url:
        return Kind.NONE
    return Kind.SECRET if settings.shared else Kind.USER


def _is_web(address: str) -> bool:
    try:
        url = urlsplit(address)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.netloc)


def _field(hint: str, name: str, *, hidden: bool = False) -> QLineEdit:
    made = QLineEdit()
    made.setPlaceholderText(f"{hint} (unchanged when left empty)" if hidden else hint)
    made.setAccessibleName(name)
    made.setMaxLength(LONGEST)
    made.setFont(font(theme.BODY))
    made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    if hidden:
        made.setEchoMode(QLineEdit.EchoMode.Password)
    return made
