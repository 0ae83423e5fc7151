"""Frames on their way round the chain, and how long they may take (spec: rooms §5.6, §14.7)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.core.clock import Clock
from app.core.errors import RoomError
from app.engine.types import Floats

STEP_FALLBACK = 30.0
BATCH_FALLBACK = 90.0
SHORTEST_TIMEOUT = 25.0
MEASURED_ENOUGH = 4
NEWEST_WEIGHT = 0.3
SLOWEST_FADES = 0.98
LAPS_ALLOWED, ROUND_TRIPS_ALLOWED, SLACK = 6, 2, 2.0


class LapFailed(RoomError):
    """A lap did not come back. ``repairable``: computing again once the chain is whole may work."""

    def __init__(self, what: str, remedy: str = "", *, repairable: bool = True) -> None:
        super().__init__(what, remedy)
        self.repairable = repairable


def smoothed(average: float, newest: float) -> float:
    """A running average after one more measurement."""
    return (1 - NEWEST_WEIGHT) * average + NEWEST_WEIGHT * newest


@dataclass(frozen=True)
class LapKey:
    """What names a lap on the wire: its first position, and whether it is a batch."""

    position: int
    batch: bool


@dataclass(frozen=True)
class LapStats:
    """Averages in seconds: whole laps, the slowest of late, and the model host's own part."""

    lap: float = 0.0
    slowest: float = 0.0
    own: float = 0.0
    count: int = 0

    def measured(self, lap: float, own: float) -> LapStats:
        if self.count == 0:
            return LapStats(lap, lap, own, 1)
        slowest = max(lap, SLOWEST_FADES * self.slowest)
        return LapStats(smoothed(self.lap, lap), slowest, smoothed(self.own, own), self.count + 1)

    def timeout(self, rtt: float, *, batch: bool) -> float:
        """Seconds to wait for a lap. ``rtt`` is the largest round trip of the chain in seconds."""
        fallback = BATCH_FALLBACK if batch else STEP_FALLBACK
        if self.count < MEASURED_ENOUGH:
            return fallback
        expected = LAPS_ALLOWED * max(self.slowest, self.lap) + ROUND_TRIPS_ALLOWED * rtt + SLACK
        return min(fallback, max(SHORTEST_TIMEOUT, expected))


@dataclass
class _Flight:
    result: asyncio.Future[Floats]
    deadline: float


class Laps:
    """The laps in flight. While the chain is held their time does not run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._flying: dict[LapKey, _Flight] = {}
        self._looked = clock.now()
        self.held = False

    def __len__(self) -> int:
        return len(self._flying)

    def open(self, key: LapKey, timeout: float) -> asyncio.Future[Floats]:
        result: asyncio.Future[Floats] = asyncio.get_running_loop().create_future()
        self._flying[key] = _Flight(result, self._clock.now() + timeout)
        return result

    def arrived(self, key: LapKey, states: Floats) -> bool:
        """False for a frame nobody waits for."""
        flight = self._flying.pop(key, None)
        if flight is None or flight.result.done():
            return False
        flight.result.set_result(states)
        return True

    def fail_all(self, error: LapFailed) -> None:
        flying, self._flying = self._flying, {}
        for flight in flying.values():
            _fail(flight.result, error)

    def tick(self) -> None:
        """Fails what is overdue."""
        now = self._clock.now()
        passed, self._looked = now - self._looked, now
        for key, flight in list(self._flying.items()):
            flight.deadline += passed if self.held else 0.0
            if flight.deadline < now:
                del self._flying[key]
                _fail(flight.result, LapFailed("A word took too long on its way through the devices."))


def _fail(result: asyncio.Future[Floats], error: LapFailed) -> None:
    """Reading the exception once keeps an abandoned lap from being reported as forgotten."""
    if not result.done():
        result.set_exception(error)
        result.exception()
