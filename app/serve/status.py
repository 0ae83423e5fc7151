"""What the window and the terminal show of the API (spec: product R-211, R-212)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

MOST_CLIENTS = 32


class Phase(Enum):
    OFF = "off"
    WAITING = "waiting"
    CONNECTED = "connected"
    ANSWERING = "answering"


@dataclass(frozen=True)
class ClientCount:
    """A program, and how many answers it got."""

    name: str
    answered: int = 0


@dataclass(frozen=True)
class ServeStatus:
    """``tool``: the program heard last. ``waiting`` requests stand behind those being answered."""

    phase: Phase = Phase.OFF
    tool: str = ""
    clients: tuple[ClientCount, ...] = ()
    served: int = 0
    waiting: int = 0

    @property
    def words(self) -> str:
        if self.phase is Phase.OFF:
            return "The API is off"
        if self.phase is Phase.WAITING:
            return "Waiting for a client"
        return f"Answering {self.tool}" if self.phase is Phase.ANSWERING else f"{self.tool} is connected"


class Tally:
    """Counts what clients ask; tells ``on_change`` after every change. ``waiting`` says how many requests wait."""

    def __init__(self, on_change: Callable[[ServeStatus], None]) -> None:
        self.waiting: Callable[[], int] = lambda: 0
        self._on_change = on_change
        self._answered: OrderedDict[str, int] = OrderedDict()
        self._at_work: list[str] = []
        self._tool = ""
        self._on = False
        self.served = 0

    @property
    def status(self) -> ServeStatus:
        clients = tuple(ClientCount(name, count) for name, count in self._answered.items())
        return ServeStatus(self._phase(), self._tool, clients, self.served, self.waiting())

    def turn(self, *, on: bool) -> None:
        self._on = on
        self.changed()

    def heard(self, name: str) -> None:
        """A program asked something, if only for the list of models."""
        if self._tool == name and name in self._answered:
            return
        self._tool = name
        self._answered.setdefault(name, 0)
        while len(self._answered) > MOST_CLIENTS:
            self._answered.popitem(last=False)
        self.changed()

    def began(self, name: str) -> None:
        self._at_work.append(name)
        self.changed()

    def changed(self) -> None:
        self._on_change(self.status)

    def ended(self, name: str, *, answered: bool) -> None:
        self._at_work.remove(name)
        self.served += answered
        self._answered[name] = self._answered.get(name, 0) + answered
        self.changed()

    def _phase(self) -> Phase:
        if not self._on:
            return Phase.OFF
        if self._at_work:
            return Phase.ANSWERING
        return Phase.CONNECTED if self._tool else Phase.WAITING
