"""What a person can do, from any screen. A room answers intents with new states, never with errors."""

from __future__ import annotations

from dataclasses import dataclass

from app.room.settings import RoomSettings


@dataclass(frozen=True)
class OpenRoom:
    """Open a new room as its creator, lending ``gb``."""

    name: str
    gb: float


@dataclass(frozen=True)
class Reopen:
    """Back into the last room, as its creator or as a member."""


@dataclass(frozen=True)
class ForgetRoom:
    """The last room is not wanted any more."""


@dataclass(frozen=True)
class JoinRoom:
    """Join by code or by invite link."""

    where: str
    name: str
    gb: float


@dataclass(frozen=True)
class Allow:
    """Let a waiting device in (creator)."""

    id: str


@dataclass(frozen=True)
class Deny:
    """Turn a waiting device away (creator)."""

    id: str


@dataclass(frozen=True)
class Disconnect:
    """Put a device or an API client out of the room (creator)."""

    id: str


@dataclass(frozen=True)
class HandOver:
    """Leave the room to another device, which owns it from then on (creator)."""

    id: str


@dataclass(frozen=True)
class AnswerHeir:
    """Own the room that its creator offers, or not."""

    yes: bool


@dataclass(frozen=True)
class SetPledge:
    """Lend another amount of memory from this device."""

    gb: float


@dataclass(frozen=True)
class PauseLending:
    """Lend nothing for now, or lend again as before: "I need my GPU"."""

    paused: bool


@dataclass(frozen=True)
class ChooseModel:
    """Select a row of the picker."""

    key: str


@dataclass(frozen=True)
class ChooseContext:
    """Ask for a context length; 0 leaves it to the room."""

    positions: int


@dataclass(frozen=True)
class Start:
    """Start the chosen model."""


@dataclass(frozen=True)
class StopStart:
    """Give a running start up, or take the model down to choose another (creator)."""


@dataclass(frozen=True)
class Ask:
    """Ask the room; queued while an answer runs."""

    text: str


@dataclass(frozen=True)
class Stop:
    """End the running answer after the word in flight, or give a held one up."""


@dataclass(frozen=True)
class Continue:
    """Go on with an answer that reached its length limit."""


@dataclass(frozen=True)
class Regenerate:
    """Answer the last question again."""


@dataclass(frozen=True)
class NewChat:
    """Forget the conversation in the whole room."""


@dataclass(frozen=True)
class Redeal:
    """Deal the layers again over who is here."""


@dataclass(frozen=True)
class ChangeSettings:
    """Replace the room's settings (creator)."""

    settings: RoomSettings


@dataclass(frozen=True)
class Typing:
    """Something is being typed here; told to the others at most every two seconds."""


@dataclass(frozen=True)
class DismissNotice:
    """Close a toast."""

    id: int


@dataclass(frozen=True)
class Leave:
    """Leave the room; the creator's leaving ends it for everybody. Also cancels connecting."""


@dataclass(frozen=True)
class BackToStart:
    """From an error or an ended room back to the first screen."""


Intent = (
    OpenRoom
    | Reopen
    | ForgetRoom
    | JoinRoom
    | Allow
    | Deny
    | Disconnect
    | HandOver
    | AnswerHeir
    | SetPledge
    | PauseLending
    | ChooseModel
    | ChooseContext
    | Start
    | StopStart
    | Ask
    | Stop
    | Continue
    | Regenerate
    | NewChat
    | Redeal
    | ChangeSettings
    | Typing
    | DismissNotice
    | Leave
    | BackToStart
)
