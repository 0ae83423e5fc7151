"""Which device runs the model, as one device of the room knows it (spec: rooms §10.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

DEAL_WITHIN = 60.0


class Course(Enum):
    """How far the followed model host is."""

    NONE = "none"
    NAMED = "named"
    """A start was relayed, or the creator said who it is; nothing was heard from it yet."""
    DEALING = "dealing"
    ONLINE = "online"


@dataclass(frozen=True)
class Following:
    """``host`` "": nobody is followed, and the creator's word is taken. ``since``: clock at the last start."""

    host: str = ""
    course: Course = Course.NONE
    since: float = 0.0
    started: bool = False
    """Whether a start is under way, not only a name."""

    def start(self, host: str, now: float) -> Following:
        """The creator relayed a start that names ``host``."""
        return Following(host, Course.NAMED, now, started=True)

    def named(self, host: str, now: float) -> Following:
        """The creator says who runs the model; "" nobody."""
        if not host:
            return Following()
        return self if self.host == host else Following(host, Course.NAMED, now)

    def dealt(self) -> Following:
        """The model host has begun to deal."""
        return replace(self, course=Course.DEALING) if self.host else self

    def online(self) -> Following:
        return replace(self, course=Course.ONLINE, started=False) if self.host else self

    @property
    def starting(self) -> bool:
        """A second start has to wait."""
        return self.started or self.course is Course.DEALING

    def overdue(self, now: float) -> bool:
        """The model host never began."""
        return self.started and self.course is Course.NAMED and now - self.since > DEAL_WITHIN
