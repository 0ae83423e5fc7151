"""What happened, as sessions tell it; ``reducer.reduce`` turns a state and an event into the next state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.room.meta import Meta
from app.room.planner import LeftOut
from app.room.settings import RoomSettings
from app.room.state import Exchange, Invite, ModelRow, NoticeKind, Offer, WaitingRequest


@dataclass(frozen=True)
class Offered:
    """The last room can be gone back to; None: no longer."""

    offer: Offer | None


@dataclass(frozen=True)
class Connecting:
    """On the way into a room; ``line`` says how far."""

    code: str
    line: str


@dataclass(frozen=True)
class InLobby:
    """Waiting for Allow, with the digits to compare."""

    digits: str


@dataclass(frozen=True)
class Entered:
    """In the room under this peer id."""

    me: str
    creator: str
    code: str


@dataclass(frozen=True)
class InviteMade:
    invite: Invite


@dataclass(frozen=True)
class Failed:
    """Opening or joining failed."""

    what: str
    remedy: str = ""


@dataclass(frozen=True)
class Member:
    """One line of the creator's roster."""

    id: str
    name: str
    meta: Meta


@dataclass(frozen=True)
class RosterChanged:
    """Everybody here, in join order; devices keep what is known of them."""

    members: tuple[Member, ...]


@dataclass(frozen=True)
class HeirWanted:
    """The creator offers the room to this device; False: no longer."""

    wanted: bool


@dataclass(frozen=True)
class WaitingAdded:
    request: WaitingRequest


@dataclass(frozen=True)
class WaitingGone:
    id: str


@dataclass(frozen=True)
class RowsChanged:
    rows: tuple[ModelRow, ...]


@dataclass(frozen=True)
class ModelChosen:
    key: str
    by_hand: bool = True


@dataclass(frozen=True)
class ContextChosen:
    positions: int


@dataclass(frozen=True)
class StartBegan:
    """Somebody started a model; ``again`` for a re-deal."""

    model: str
    label: str
    by: str
    model_host: str
    again: bool = False


@dataclass(frozen=True)
class Dealt:
    """Who holds which layers, by name: first and last from 1; ``held`` in GB; ``predicted`` in tok/s, 0 unknown."""

    ranges: Mapping[str, tuple[int, int]]
    held: Mapping[str, float] = field(default_factory=dict[str, float])
    out: Mapping[str, LeftOut] = field(default_factory=dict[str, LeftOut])
    predicted: float = 0.0


@dataclass(frozen=True)
class LoadProgress:
    """Loaded shares 0..1 by name."""

    shares: Mapping[str, float]


@dataclass(frozen=True)
class OwnLoad:
    """This device's own load in bytes."""

    step: str
    bytes_done: int
    bytes_total: int
    seconds_left: float | None = None


@dataclass(frozen=True)
class DeviceReady:
    name: str


@dataclass(frozen=True)
class WentOnline:
    """Every share is in. ``wanted`` is set when the context is shorter than hoped."""

    model: str
    label: str
    context: int
    wanted: int = 0
    model_host: str = ""


@dataclass(frozen=True)
class StartFailed:
    why: str
    remedy: str = ""


@dataclass(frozen=True)
class AnswerBegan:
    """An answer starts; ``continued`` goes on with the last exchange."""

    id: str
    asker_id: str
    asker: str
    question: str
    continued: bool = False
    hidden: bool = False
    client: str = ""


@dataclass(frozen=True)
class AnswerText:
    """More text of the running answer."""

    text: str


@dataclass(frozen=True)
class AnswerEnded:
    stats: str
    used: int
    maximum: int
    failed: bool = False
    capped: bool = False


@dataclass(frozen=True)
class LastReplaced:
    """The last exchange is being answered again."""


@dataclass(frozen=True)
class QueueChanged:
    length: int


@dataclass(frozen=True)
class OwnPlace:
    """Own place in the queue; 0 when no longer waiting."""

    position: int


@dataclass(frozen=True)
class HistoryCame:
    """What was said before this device came."""

    items: tuple[Exchange, ...]


@dataclass(frozen=True)
class ChatCleared:
    by: str


@dataclass(frozen=True)
class SomebodyTypes:
    """ "" when they stopped."""

    name: str


@dataclass(frozen=True)
class Measured:
    """A second's worth of telemetry. ``ms`` and ``wire_ms`` are by name."""

    tokens_per_second: float
    ms_per_word: float
    wire_ms: float = 0.0
    tokens: int = 0
    ms: Mapping[str, float] = field(default_factory=dict[str, float])
    hops: Mapping[str, float] = field(default_factory=dict[str, float])
    drafts_accepted: float | None = None


@dataclass(frozen=True)
class PromptRead:
    """The prompt is in: how much was reused, and how fast the rest was read."""

    reused: int
    read: int
    seconds: float


@dataclass(frozen=True)
class LinkMeasured:
    id: str
    rtt_ms: float
    path: str = "unknown"


@dataclass(frozen=True)
class WentSilent:
    """A device stopped responding; ``holds_answer`` when the running answer waits for it."""

    id: str
    holds_answer: bool = False


@dataclass(frozen=True)
class CameBack:
    """A silent or absent device answers again."""

    id: str


@dataclass(frozen=True)
class Degraded:
    """A device that held layers is gone."""

    why: str


@dataclass(frozen=True)
class RedealOffered:
    """Dealing again would help; "" takes the offer back."""

    reason: str


@dataclass(frozen=True)
class CreatorLost:
    """The creator cannot be reached."""


@dataclass(frozen=True)
class CreatorFound:
    """The creator is back."""


@dataclass(frozen=True)
class RoomEnded:
    why: str
    remedy: str = ""


@dataclass(frozen=True)
class SettingsChanged:
    settings: RoomSettings


@dataclass(frozen=True)
class Noticed:
    """Something to tell the person once."""

    text: str
    remedy: str = ""
    kind: NoticeKind = NoticeKind.INFO
    seconds: float = 4.0


@dataclass(frozen=True)
class NoticeClosed:
    id: int


@dataclass(frozen=True)
class LeftRoom:
    """Back on the first screen."""


Event = (
    Offered
    | Connecting
    | InLobby
    | Entered
    | InviteMade
    | Failed
    | RosterChanged
    | HeirWanted
    | WaitingAdded
    | WaitingGone
    | RowsChanged
    | ModelChosen
    | ContextChosen
    | StartBegan
    | Dealt
    | LoadProgress
    | OwnLoad
    | DeviceReady
    | WentOnline
    | StartFailed
    | AnswerBegan
    | AnswerText
    | AnswerEnded
    | LastReplaced
    | QueueChanged
    | OwnPlace
    | HistoryCame
    | ChatCleared
    | SomebodyTypes
    | Measured
    | PromptRead
    | LinkMeasured
    | WentSilent
    | CameBack
    | Degraded
    | RedealOffered
    | CreatorLost
    | CreatorFound
    | RoomEnded
    | SettingsChanged
    | Noticed
    | NoticeClosed
    | LeftRoom
)
