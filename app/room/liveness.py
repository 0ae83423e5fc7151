"""Is a device still there? A pure rule over clock readings (spec: rooms §16.1, §16.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PING = 2.5
CHAIN_PING = 0.5
LATE_PINGS = 2
LATE_WHILE_ANSWERING = 1.2
SHOWN_IDLE = 3 * PING
AFTER_SLEEP = 8.0
SHORTEST_HOLD, LONGEST_HOLD = 3.5, 5.0


class Role(Enum):
    """What the other end is to us; the value is the silence in seconds after which its link is dropped."""

    CHAIN = 12.0
    COMPUTER = 15.0
    CREATOR = 30.0
    CHAIN_WHILE_STARTING = 45.0
    PHONE = 60.0

    @property
    def holds(self) -> bool:
        """Whether a running answer waits for it: a device of the chain, or the one that runs the model."""
        return self in {Role.CHAIN, Role.CREATOR}


class Verdict(Enum):
    """ALIVE, SILENT (shown as not responding; an answer waits) or GONE (drop the link)."""

    ALIVE = "alive"
    SILENT = "silent"
    GONE = "gone"


@dataclass(frozen=True)
class Subject:
    """One link as seen now. ``heard`` is the clock at its last byte; ``loading`` devices are never judged."""

    role: Role
    heard: float
    rtt: float = 0.0
    loading: bool = False


@dataclass(frozen=True)
class Watch:
    """When this device last looked, since when silence counts for a running answer, and when it last woke up."""

    last_tick: float
    answering_since: float | None = None
    woke: float | None = None

    def late(self, now: float) -> bool:
        """Our own timer stalled: nobody can be blamed for silence meanwhile."""
        allowed = LATE_WHILE_ANSWERING if self.answering_since is not None else LATE_PINGS * PING
        return now - self.last_tick > allowed

    def ticked(self, now: float) -> Watch:
        late = self.late(now)
        since = now if self.answering_since is not None and late else self.answering_since
        return Watch(now, since, now if late else self.woke)

    def silence(self, heard: float, now: float) -> float:
        """Nobody could be heard while this device was asleep."""
        return now - (heard if self.woke is None else max(heard, self.woke))

    def limit(self, subject: Subject) -> float:
        """A link that carried nothing since this device woke up is given less time than one that fell silent."""
        asleep = self.woke is not None and subject.heard <= self.woke
        return min(subject.role.value, AFTER_SLEEP) if asleep else subject.role.value


def hold_after(rtt: float) -> float:
    """Seconds of silence after which a running answer is held."""
    return min(max(3.0 + 3 * rtt, SHORTEST_HOLD), LONGEST_HOLD)


def judge(subject: Subject, watch: Watch, now: float) -> Verdict:
    """``watch`` is from before this tick."""
    if subject.loading or watch.late(now):
        return Verdict.ALIVE
    silence = watch.silence(subject.heard, now)
    if silence > watch.limit(subject):
        return Verdict.GONE
    if watch.answering_since is not None and subject.role.holds:
        counted = min(silence, now - watch.answering_since)
        return Verdict.SILENT if counted > hold_after(subject.rtt) else Verdict.ALIVE
    return Verdict.SILENT if silence > SHOWN_IDLE else Verdict.ALIVE
