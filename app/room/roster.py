"""Who is in the room, in join order, as the creator keeps it (spec: rooms §10.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.room.events import Member
from app.room.messages import Roster as RosterMessage
from app.room.messages import RosterEntry
from app.room.meta import lending, meta_map, read_meta
from app.room.names import clean_name


@dataclass(frozen=True)
class Roster:
    """An immutable list of members, the creator first."""

    members: tuple[Member, ...] = ()

    def find(self, id: str) -> Member | None:
        return next((member for member in self.members if member.id == id), None)

    def named(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(member.name for member in self.members)

    def with_member(self, member: Member) -> Roster:
        """Added at the end, or replaced in place when the id or the name is known."""
        if not any(_same(known, member) for known in self.members):
            return Roster((*self.members, member))
        kept: list[Member] = []
        for known in self.members:
            if not _same(known, member):
                kept.append(known)
            elif member not in kept:
                kept.append(member)
        return Roster(tuple(kept))

    def without(self, id: str) -> Roster:
        return Roster(tuple(member for member in self.members if member.id != id))

    def with_pledge(self, id: str, gb: float, *, paused: bool) -> Roster:
        def told(member: Member) -> Member:
            return replace(member, meta=lending(member.meta, gb, paused=paused)) if member.id == id else member

        return Roster(tuple(told(member) for member in self.members))

    def message(self) -> RosterMessage:
        """Every member of ours proves its links, so each entry says so."""
        return RosterMessage(
            members=tuple(
                RosterEntry(id=member.id, name=member.name, meta=meta_map(member.meta), a=True)
                for member in self.members
            )
        )


def _same(known: Member, member: Member) -> bool:
    return known.id == member.id or known.name == member.name


def read_roster(message: RosterMessage) -> Roster:
    """A creator's roster with every name cleaned."""
    members = (Member(entry.id, clean_name(entry.name, entry.id), read_meta(entry.meta)) for entry in message.members)
    return Roster(tuple(members))
