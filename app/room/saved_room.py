"""A room as its creator keeps it on disk, to be back in it after a restart (spec: rooms §16.7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from app.room import messages as m
from app.room.gate import Gate, Pass

STRAIGHT_BACK = 60.0
"""Seconds within which a device goes back into its room without being asked."""
OFFERED = 900.0
OFFERED_TO_MEMBERS = 600.0
FORMAT = 1


class SavedGate(msgspec.Struct, frozen=True):
    """The door: keys, and passes as (digest, name)."""

    key: str
    mesh_key: str
    passes: tuple[tuple[str, str], ...] = ()
    ask: bool = True
    api_clients: bool = True
    legacy: bool = False


class SavedWish(msgspec.Struct, frozen=True):
    """The model that was wanted."""

    model: str
    context: int = 0
    by: str = ""


class SavedRoom(msgspec.Struct, frozen=True, tag="room"):
    """``identity`` is the certificate with its key. ``host`` is (id, name) of another device that ran the model,
    ``holders`` are names of those layers were dealt to, none before they were."""

    code: str
    name: str
    gb: float
    gate: SavedGate
    identity: str = ""
    rules: m.RulesAre = m.RulesAre()
    past: m.PastIs = m.PastIs()
    wish: SavedWish | None = None
    host: tuple[str, str] = ("", "")
    holders: tuple[str, ...] = ()
    format: int = FORMAT


class SavedJoin(msgspec.Struct, frozen=True, tag="join"):
    """A place in somebody else's room; its pass is kept with the secrets. ``loading``: layers were being loaded."""

    code: str
    name: str
    gb: float
    where: str = ""
    loading: bool = False
    format: int = FORMAT


Saved = SavedRoom | SavedJoin


@dataclass(frozen=True)
class Remembered:
    """What was saved, and how many seconds ago the room was last alive."""

    saved: Saved
    age: float

    @property
    def straight_back(self) -> bool:
        return self.age <= STRAIGHT_BACK

    @property
    def offered(self) -> bool:
        return self.age <= (OFFERED if isinstance(self.saved, SavedRoom) else OFFERED_TO_MEMBERS)


class RoomMemory(Protocol):
    """The last room of this device. Calls return at once; what cannot be written is logged."""

    def keep(self, saved: Callable[[], Saved]) -> None: ...

    def alive(self) -> None:
        """The room that was kept still runs."""
        ...

    def forget(self) -> None: ...

    def last(self) -> Remembered | None: ...

    def close(self) -> None: ...


class NoMemory:
    """Nothing outlives the program."""

    def keep(self, saved: Callable[[], Saved]) -> None: ...

    def alive(self) -> None: ...

    def forget(self) -> None: ...

    def last(self) -> Remembered | None:
        return None

    def close(self) -> None: ...


def saved_gate(gate: Gate) -> SavedGate:
    passes = tuple((known.digest, known.name) for known in gate.passes)
    return SavedGate(gate.key, gate.mesh_key, passes, gate.ask, gate.api_clients, gate.legacy)


def read_gate(saved: SavedGate) -> Gate:
    passes = tuple(Pass(digest, name) for digest, name in saved.passes)
    return Gate(saved.key, saved.mesh_key, passes, saved.ask, saved.api_clients, saved.legacy)


def encode_saved(saved: Saved) -> bytes:
    return msgspec.json.encode(saved)


def decode_saved(content: bytes) -> Saved | None:
    """None for what another version wrote, or what is damaged."""
    try:
        saved = msgspec.json.decode(content, type=Saved)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return saved if saved.format == FORMAT else None
