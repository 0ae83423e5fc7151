"""Everything a screen draws, as one immutable value.

The window and the terminal draw a ``RoomState`` and nothing else; any screen can be shown from a made-up one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from app.room.kinds import Kind
from app.room.planner import LeftOut
from app.room.settings import RoomSettings


class Phase(Enum):
    """Which screen is up, and what may be done on it."""

    START = "start"
    """Not in a room: open one or join one."""
    CONNECTING = "connecting"
    """On the way into a room; ``RoomState.status_line`` says how far."""
    LOBBY = "lobby"
    """Found the room, waiting to be let in; ``RoomState.digits`` is compared with the creator's prompt."""
    ROOM = "room"
    """In the room, no model runs: the model panel."""
    STARTING = "starting"
    """Layers are being loaded: the loading card."""
    ONLINE = "online"
    """A model runs and is idle."""
    ANSWERING = "answering"
    HELD = "held"
    """An answer waits for a device that went silent (``RoomState.held_by``); Stop gives up."""
    DEGRADED = "degraded"
    """A device that held layers is gone (``RoomState.trouble`` says which); questions are refused."""
    REDEALING = "redealing"
    """Layers are being dealt again; the conversation is kept."""
    RECONNECTING = "reconnecting"
    """The creator cannot be reached; this device keeps knocking."""
    OVER = "over"
    """The room has ended; ``RoomState.trouble`` says why."""
    ERROR = "error"
    """Joining or opening failed; ``RoomState.trouble`` and ``remedy`` say why and what to do."""

    @property
    def in_room(self) -> bool:
        return self not in OUTSIDE

    @property
    def has_model(self) -> bool:
        return self in RUNNING


OUTSIDE = frozenset({Phase.START, Phase.CONNECTING, Phase.LOBBY, Phase.OVER, Phase.ERROR})
RUNNING = frozenset({Phase.ONLINE, Phase.ANSWERING, Phase.HELD})


class DeviceStatus(Enum):
    """The value is the word shown on a device's card."""

    CONNECTED = "connected"
    LOADING = "loading"
    READY = "ready"
    CHAT_ONLY = "chat only"
    SILENT = "not responding"
    AWAY = "gone"
    PAUSED = "paused"


@dataclass(frozen=True)
class Device:
    """A device of the room. Times in milliseconds a word, averaged; None where nothing was measured."""

    id: str
    name: str
    kind: Kind = Kind.COMPUTER
    gb: float = 0.0
    gpu: str = ""
    holds_layers: bool = True
    """Whether it could hold layers at all; False: it only asks."""
    colour: int | None = None
    """Index into the device colours, unique in the room; None: grey, for devices without a GPU."""
    me: bool = False
    creator: bool = False
    model_host: bool = False
    layers: tuple[int, int] | None = None
    """First and last layer held, counted from 1."""
    held_gb: float = 0.0
    """GB the dealt layers take, of the ``gb`` lent."""
    progress: float | None = None
    """Loaded share 0..1 while loading."""
    ready: bool = False
    out: LeftOut | None = None
    """Why it holds no layers although a model runs."""
    ms: float | None = None
    wire_ms: float | None = None
    """Time on the way from this device to the next."""
    rtt_ms: float | None = None
    path: str = "unknown"
    """"direct", "relay" or "unknown"."""
    silent: bool = False
    away: bool = False
    client: str = ""
    """The tool behind an API client."""
    ours: bool = False
    """Whether it runs this program."""
    paused: bool = False
    """Its owner needs the GPU just now; it lends nothing."""

    @property
    def status(self) -> DeviceStatus:
        if self.away:
            return DeviceStatus.AWAY
        if self.silent:
            return DeviceStatus.SILENT
        if self.paused:
            return DeviceStatus.PAUSED
        if self.progress is not None and not self.ready:
            return DeviceStatus.LOADING
        if self.ready:
            return DeviceStatus.READY
        return DeviceStatus.CONNECTED if self.holds_layers else DeviceStatus.CHAT_ONLY


@dataclass(frozen=True)
class WaitingRequest:
    """Somebody at the door. ``digits`` must equal those on their screen; "" when they cannot show any."""

    id: str
    name: str
    kind: Kind
    gb: float = 0.0
    chat_only: bool = False
    digits: str = ""


@dataclass(frozen=True)
class ModelRow:
    """One line of the model picker.

    ``sentence`` is the verdict as shown ("fits on otter alone", "3.2 GB more needed"); when short,
    ``helpers`` are names that could close the gap alone and ``own_raise_gb`` what this device would
    have to lend in all to do so itself (None: it cannot).
    """

    key: str
    label: str
    need_gb: float
    have_gb: float
    fits: bool
    sentence: str
    short_gb: float = 0.0
    helpers: tuple[str, ...] = ()
    own_raise_gb: float | None = None
    context: int = 0
    contexts: tuple[int, ...] = ()
    download_bytes: int = 0
    on_disk: bool = False
    starter: bool = False
    predicted: float | None = None
    """tok/s without drafts; None where too little of the room was measured."""
    speed: str = ""
    """As shown: "about 12 tok/s on 2 devices; 3 would be slower", or what the last answer gave."""


@dataclass(frozen=True)
class Tried:
    """How fast a model ran here. ``shares``: name, layers and ms a word of every device that held some."""

    model: str
    tokens_per_second: float
    shares: tuple[tuple[str, int, float], ...]

    @property
    def names(self) -> set[str]:
        return {name for name, _, _ in self.shares}


@dataclass(frozen=True)
class LoadState:
    """This device's part of a running load; the others' bars are ``Device.progress``."""

    model: str
    label: str
    by: str = ""
    step: str = ""
    """What this device is doing: "downloading", "copying from the room", "loading", "preparing"."""
    bytes_done: int = 0
    bytes_total: int = 0
    seconds_left: float | None = None
    again: bool = False
    """A re-deal, not a first start."""
    predicted: float = 0.0
    """tok/s that the model host expects; 0: it cannot tell."""


@dataclass(frozen=True)
class Speed:
    """The numbers of the layer band and the speed panel. 0 or None: not measured yet."""

    tokens_per_second: float = 0.0
    ms_per_word: float = 0.0
    wire_ms: float = 0.0
    tokens: int = 0
    context_used: int = 0
    context_max: int = 0
    reused: int = 0
    prefill_per_second: float = 0.0
    drafts_accepted: float | None = None
    history: tuple[float, ...] = ()
    """tok/s of the last minute, oldest first, about one a second."""
    best: float = 0.0

    @property
    def context_share(self) -> float:
        return self.context_used / self.context_max if self.context_max else 0.0


@dataclass(frozen=True)
class Exchange:
    """A question and its answer. ``hidden``: this screen may not read the text, only that it happens."""

    id: str
    asker_id: str
    asker: str
    question: str
    answer: str = ""
    raw: str = ""
    """The text as it streamed, reasoning included."""
    live: bool = False
    thinking: str | None = None
    """Reasoning text, apart from the answer; None when there is none."""
    thinking_open: bool = False
    stats: str = ""
    failed: bool = False
    capped: bool = False
    """Stopped at the length limit and may be continued."""
    replaced: bool = False
    hidden: bool = False
    client: str = ""
    """The tool that asked over the API; such an exchange is not part of the chat's memory."""


class NoticeKind(Enum):
    INFO = "info"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Notice:
    """A toast. It goes by itself after ``seconds`` or when dismissed."""

    id: int
    text: str
    remedy: str = ""
    kind: NoticeKind = NoticeKind.INFO
    seconds: float = 4.0


@dataclass(frozen=True)
class Invite:
    """How to get another device in. ``link`` carries the key only on the creator's screen."""

    code: str
    link: str = ""
    has_key: bool = False


@dataclass(frozen=True)
class Offer:
    """A room this device was in a while ago. ``owner``: it was its own. ``straight_back``: a moment ago."""

    code: str
    owner: bool
    straight_back: bool = False


@dataclass(frozen=True)
class RoomState:
    """The whole room as one screen sees it."""

    phase: Phase = Phase.START
    me: str = ""
    """Own peer id."""
    creator: str = ""
    model_host: str = ""
    code: str = ""
    invite: Invite | None = None
    offer: Offer | None = None
    """The last room, while it can be gone back to."""
    status_line: str = ""
    digits: str = ""
    trouble: str = ""
    remedy: str = ""
    held_by: str = ""
    devices: tuple[Device, ...] = ()
    """In the creator's join order, API clients included."""
    waiting: tuple[WaitingRequest, ...] = ()
    heir_wanted: bool = False
    """The creator asks whether this device will own the room from now on."""
    rows: tuple[ModelRow, ...] = ()
    chosen: str = ""
    """Key of the chosen model; follows the largest that fits until a person chooses."""
    chosen_by_hand: bool = False
    context: int = 0
    """Context asked for, 0 for the model's own."""
    model: str = ""
    """Key of the model that runs or is starting."""
    label: str = ""
    context_wanted: int = 0
    """What the room wanted when it opened at a shorter context; 0 otherwise."""
    layers: int = 0
    """Layers of the model that runs or is starting."""
    load: LoadState | None = None
    speed: Speed = field(default_factory=Speed)
    tried: tuple[Tried, ...] = ()
    """Models that answered in this room, each with its last figures."""
    transcript: tuple[Exchange, ...] = ()
    queue_length: int = 0
    my_position: int = 0
    """Own place in the queue, 1 = next; 0: not waiting."""
    typing: str = ""
    notices: tuple[Notice, ...] = ()
    settings: RoomSettings = field(default_factory=RoomSettings)
    redeal_reason: str = ""
    """Why dealing again would help; "" when it would not."""

    @property
    def i_am_creator(self) -> bool:
        return bool(self.me) and self.me == self.creator

    @property
    def people(self) -> tuple[Device, ...]:
        """Devices without API clients."""
        return tuple(device for device in self.devices if device.kind is not Kind.API)

    @property
    def pooled_gb(self) -> float:
        return sum(device.gb for device in self.devices if device.holds_layers and not device.away)

    @property
    def my_device(self) -> Device | None:
        return next((device for device in self.devices if device.me), None)

    @property
    def live(self) -> Exchange | None:
        """The exchange being answered."""
        return next((item for item in reversed(self.transcript) if item.live), None)

    @property
    def can_start(self) -> bool:
        row = next((row for row in self.rows if row.key == self.chosen), None)
        return self.phase is Phase.ROOM and row is not None and row.fits

    @property
    def can_ask(self) -> bool:
        """A question is taken now; while answering it is queued."""
        return self.phase in RUNNING

    @property
    def can_stop(self) -> bool:
        live = self.live
        return live is not None and (self.me in {live.asker_id, self.model_host} or self.i_am_creator)

    @property
    def can_redo(self) -> bool:
        """Whether Regenerate is offered here for the last exchange, and Continue when it was capped."""
        last = next((item for item in reversed(self.transcript) if not item.replaced), None)
        mine = last is not None and self.me in {last.asker_id, self.model_host}
        return self.phase is Phase.ONLINE and mine and last is not None and not last.client
