"""Everybody a model host speaks to, as it sees them."""

from __future__ import annotations

from typing import Protocol

from app.room import messages as m
from app.room.events import Event, Member
from app.room.ports import Link


class Crowd(Protocol):
    """The room's members and how to reach them. Sending never blocks and never raises."""

    me: str
    creator: str

    @property
    def members(self) -> tuple[Member, ...]:
        """Those here, in join order, this device included."""
        ...

    def link(self, id: str) -> Link | None: ...

    def send(self, id: str, message: m.Message) -> None: ...

    def tell(self, message: m.Message) -> None:
        """To every member and to the own screen."""
        ...

    def show(self, message: m.Message) -> None:
        """To the own screen only."""
        ...

    def happened(self, event: Event) -> None:
        """What only the own screen shows."""
        ...

    async def reach(self) -> None:
        """Links to all members, as far as they come up; returns when each is there or was given up."""
        ...


def tell_one(crowd: Crowd, id: str, message: m.Message) -> None:
    """To one member, who may be the person at this device."""
    if id == crowd.me:
        crowd.show(message)
    else:
        crowd.send(id, message)
