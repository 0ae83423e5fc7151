"""What the window shows of the API for other programs, and what a person wishes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.core.ports import API_PORT
from app.room.api.events import ServedModel
from app.serve.settings_for_tools import ANY_KEY, Address
from app.serve.status import Phase, ServeStatus


@dataclass(frozen=True)
class ApiWish:
    """How the API should be: ``port`` 0 is any that is free, ``key`` "" takes any key."""

    on: bool = False
    port: int = API_PORT
    key: str = field(default="", repr=False)


@dataclass(frozen=True)
class ApiView:
    """``listening`` is the port it has, 0 while it has none; ``model`` is None while none runs.

    ``trouble`` with its ``remedy`` say why it does not listen although it should.
    """

    wish: ApiWish = field(default_factory=ApiWish)
    listening: int = 0
    status: ServeStatus = field(default_factory=ServeStatus)
    model: ServedModel | None = None
    trouble: str = ""
    remedy: str = ""

    @property
    def address(self) -> Address | None:
        """Where programs ask now; None while nothing would answer them."""
        if not self.listening or self.model is None:
            return None
        return Address(self.listening, self.model, self.wish.key or ANY_KEY)

    @property
    def words(self) -> str:
        """One line of how it is."""
        if self.trouble:
            return self.trouble
        if not self.wish.on:
            return "Off"
        if not self.listening:
            return "Turning on"
        return "Waiting for a program" if self.status.phase is Phase.WAITING else self.status.words

    @property
    def button(self) -> str:
        """The word of the button that leads to it."""
        if self.trouble:
            return "API: not on"
        return "API on" if self.listening else "Serve API"
