"""The control messages of a room as typed values (spec: rooms §6).

``decode`` turns a peer's map into one of these, ``encode`` turns one into the map that is sent. Flags are 1
on the wire and left out when false; members we do not know are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from app.core.errors import ProtocolError

PROTOCOL_VERSION = 4
LONGEST_ASK = 200_000
LONGEST_LINE = 4_000
HISTORY_SENT = 20
MODEL_HOST = "host"
"""In the place of a peer id: the last device of a chain sends its frames back to the model host."""

Name = Annotated[str, msgspec.Meta(max_length=200)]
PeerId = Annotated[str, msgspec.Meta(max_length=120)]
Line = Annotated[str, msgspec.Meta(max_length=LONGEST_LINE)]
LongText = Annotated[str, msgspec.Meta(max_length=LONGEST_ASK)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Ms = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Stamp = Annotated[float, msgspec.Meta(ge=0, le=2**53)]
Layer = Annotated[int, msgspec.Meta(ge=0, le=4_096)]
ByName = Annotated[dict[Name, Name], msgspec.Meta(max_length=256)]
NumberByName = Annotated[dict[Name, float], msgspec.Meta(max_length=256)]
Slots = Annotated[tuple[Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)], ...], msgspec.Meta(max_length=256)]
RangeText = Annotated[str, msgspec.Meta(max_length=40)]
Ranges = Annotated[tuple[RangeText, ...], msgspec.Meta(max_length=100_000)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**50)]
Shown = Annotated[bytes, msgspec.Meta(max_length=4_096)]
RawMeta = Annotated[dict[str, Any], msgspec.Meta(max_length=64)]


class Message(msgspec.Struct, frozen=True, tag_field="t"):
    """Base of all messages; the tag is the member ``t``."""


class RosterEntry(msgspec.Struct, frozen=True):
    """A line of the roster. ``a``: that member proves its links."""

    id: PeerId
    name: Name = ""
    meta: RawMeta = {}
    a: bool = False


class Died(msgspec.Struct, frozen=True):
    """What a device was doing when its process ended last time."""

    during: Line = ""
    ago: float = 0.0
    loading: bool = False


class Hello(Message, frozen=True, tag="hello"):
    name: Name = ""
    meta: RawMeta = {}
    v: int = 0
    back: bool = False
    died: Died | None = None


class Bye(Message, frozen=True, tag="bye"):
    """``closed`` from the creator: the room is over for good."""

    reason: Line = ""
    closed: bool = False


class Leaving(Message, frozen=True, tag="leaving"):
    """``final``: the person left on purpose; nobody needs to wait for a return."""

    final: bool = False


class Ping(Message, frozen=True, tag="ping"):
    ts: Stamp = 0.0


class Pong(Message, frozen=True, tag="pong"):
    ts: Stamp = 0.0


class Roster(Message, frozen=True, tag="roster"):
    members: Annotated[tuple[RosterEntry, ...], msgspec.Meta(max_length=256)]


class Pledge(Message, frozen=True, tag="pledge"):
    gb: Annotated[float, msgspec.Meta(ge=0, le=4_096)]


class StartRequest(Message, frozen=True, tag="ai-start-req"):
    """``ctx`` 0: the model's own context."""

    model: Name
    boss: PeerId = ""
    by: Name = ""
    ctx: Count = 0


class StartRefused(Message, frozen=True, tag="ai-start-refused"):
    why: Line = ""


class ModelHostIs(Message, frozen=True, tag="ai-modelhost"):
    id: PeerId


class InventoryRequest(Message, frozen=True, tag="ai-inv-req"):
    """Which ranges of this weight file are on your disk?"""

    url: Line = ""


class Inventory(Message, frozen=True, tag="ai-inv"):
    """``have`` holds ranges "first-last"."""

    url: Line = ""
    have: Ranges = ()


class WeightRequest(Message, frozen=True, tag="ai-wget"):
    """Asks for bytes ``lo`` to ``hi``, both included. ``win``: the most bytes on the way, 0 for no acknowledgements."""

    id: Line
    url: Line = ""
    lo: Offset = 0
    hi: Offset = 0
    win: Count = 0


class WeightPart(Message, frozen=True, tag="ai-wpart"):
    """One of ``off`` with ``data``, ``done``, ``miss``."""

    id: Line
    off: Offset | None = None
    data: Annotated[bytes, msgspec.Meta(max_length=1 << 18)] | None = None
    done: bool = False
    miss: bool = False


class WeightAck(Message, frozen=True, tag="ai-wack"):
    """``got`` bytes of the request were used, or it is not wanted any more."""

    id: Line
    got: Offset | None = None
    cancel: bool = False


class DirectAsk(Message, frozen=True, tag="ai-wdoor-req"):
    """Ours: may I fetch weights over a connection of their own? ``cert`` is what I show there, in DER."""

    id: Line
    cert: Shown


class DirectOffer(Message, frozen=True, tag="ai-wdoor"):
    """Ours: come to ``port`` at one of the addresses ``at``, where ``cert`` is shown; or ``miss``."""

    id: Line
    cert: Shown = b""
    at: Annotated[tuple[RangeText, ...], msgspec.Meta(max_length=16)] = ()
    port: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)] = 0
    miss: bool = False


class Offload(msgspec.Struct, frozen=True):
    """Which layers' experts a device parks in RAM, and in how much memory."""

    lo: Layer
    hi: Layer
    vramBytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)]
    ramBytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)]


class Load(Message, frozen=True, tag="ai-load"):
    """``prev`` is ours: the only device whose frames count. ``next`` may be MODEL_HOST.

    ``inv`` says who has which ranges of the weight file.
    """

    model: Name
    range: tuple[Layer, Layer]
    ctx: Count
    kv: Name = "f16"
    next: PeerId = MODEL_HOST
    host: PeerId = ""
    prev: PeerId = ""
    v: int = PROTOCOL_VERSION
    offload: Offload | None = None
    inv: Annotated[dict[PeerId, Ranges], msgspec.Meta(max_length=256)] = {}


class Layers(Message, frozen=True, tag="ai-layers"):
    """``by`` has ranges "lo–hi", counted from 0 with the last layer included."""

    by: ByName = {}
    held: NumberByName = {}
    out: ByName = {}


class LoadShare(Message, frozen=True, tag="ai-progress"):
    pct: float = 0.0


class HostProgress(Message, frozen=True, tag="ai-hostprog"):
    all: NumberByName = {}
    at: float = 0.0


class Ready(Message, frozen=True, tag="ai-ready"):
    """``ckpt``: this device saves, loads and drops its state; ``slots`` it has read back from its disk."""

    ckpt: bool = False
    slots: Slots = ()


class CheckpointsLoaded(Message, frozen=True, tag="ai-ckpt-loaded"):
    """The slots a device holds; ours also says which it was to hold and could not."""

    slots: Slots = ()
    lost: Slots = ()


class DeviceError(Message, frozen=True, tag="ai-error"):
    """``load``: this device could not load its layers."""

    message: Line = ""
    load: bool = False


class StartFailed(Message, frozen=True, tag="ai-start-failed"):
    why: Line = ""


class ReadyAll(Message, frozen=True, tag="ai-ready-all"):
    model: Name
    label: Name = ""
    ctx: Count = 0
    ctxWant: Count = 0
    out: ByName = {}


class Share(Message, frozen=True, tag="ai-share"):
    gb: float = 0.0
    drop: bool = False
    why: Line = ""


class Next(Message, frozen=True, tag="ai-next"):
    """A neighbour changed. ``relink``: the same place came back, dial it afresh."""

    next: PeerId
    relink: bool = False
    prev: PeerId = ""


class Linked(Message, frozen=True, tag="ai-linked"):
    next: PeerId = ""
    ok: bool = False


class LinkLost(Message, frozen=True, tag="ai-linklost"):
    name: Name = ""
    up: bool = False


class Degraded(Message, frozen=True, tag="ai-degraded"):
    why: Line = ""


class Redeal(Message, frozen=True, tag="ai-redeal"):
    by: Name = ""
    model: Name = ""


class Silent(Message, frozen=True, tag="ai-silent"):
    """Ours: a device stopped responding, or answers again."""

    id: PeerId
    silent: bool = False
    hold: bool = False


class Ask(Message, frozen=True, tag="ai-ask"):
    text: LongText = ""


class Queued(Message, frozen=True, tag="ai-queued"):
    pos: Count = 0


class QueueLength(Message, frozen=True, tag="ai-queue"):
    n: Count = 0


class Busy(Message, frozen=True, tag="ai-busy"):
    why: Line = ""


class AnswerStart(Message, frozen=True, tag="ai-genstart"):
    name: Name = ""
    text: LongText = ""
    asker: PeerId = ""
    cont: bool = False
    mid: Line = ""
    hidden: bool = False


class Token(Message, frozen=True, tag="ai-token"):
    """``d``: 0 sampled, 1 from a draft block, 2 from prompt lookup."""

    text: Line = ""
    d: int = 0


class ContextUse(msgspec.Struct, frozen=True):
    used: Count = 0
    max: Count = 0


class AnswerDone(Message, frozen=True, tag="ai-gendone"):
    stats: Line = ""
    ctx: ContextUse = ContextUse()
    failed: bool = False
    capped: bool = False
    hidden: bool = False


class HistoryItem(msgspec.Struct, frozen=True):
    name: Name = ""
    text: LongText = ""
    reply: LongText = ""
    stats: Line = ""
    mid: Line = ""


class History(Message, frozen=True, tag="ai-history"):
    items: Annotated[tuple[HistoryItem, ...], msgspec.Meta(max_length=HISTORY_SENT)] = ()


class StopAnswer(Message, frozen=True, tag="ai-stop"):
    pass


class Command(Message, frozen=True, tag="ai-cmd"):
    """``cmd`` "continue" or "regen"; ours also "new" (new chat) and "redeal"."""

    cmd: Name = ""


class Regenerated(Message, frozen=True, tag="ai-regen"):
    pass


class ChatReset(Message, frozen=True, tag="ai-reset"):
    by: Name = ""


class VisibilityIs(Message, frozen=True, tag="ai-visibility"):
    mode: Name = "all"


class StyleIs(Message, frozen=True, tag="ai-style"):
    persona: Name = "default"
    sampling: Name = "focused"
    thinking: bool = False
    length: Name = "normal"


class Typing(Message, frozen=True, tag="ai-typing"):
    name: Name = ""


class Timings(msgspec.Struct, frozen=True):
    """Averages in ms: a verify frame, a single column, a prefill batch."""

    spec: Ms = 0.0
    one: Ms = 0.0
    pre: Ms = 0.0


class Telemetry(Message, frozen=True, tag="ai-tele"):
    k: Timings = Timings()
    amax: float = 0.0


class MapNode(msgspec.Struct, frozen=True):
    name: Name = ""
    layers: Name = ""
    ms: Ms = 0.0
    host: bool = False


class MapStats(msgspec.Struct, frozen=True):
    """Words a second, share of drafts accepted; a lap, its compute and its wire in ms; ``n`` words so far."""

    tps: float = 0.0
    acc: float | None = None
    lap: float = 0.0
    gpu: float = 0.0
    net: float = 0.0
    n: Count = 0


class RoomMap(Message, frozen=True, tag="ai-map"):
    nodes: Annotated[tuple[MapNode, ...], msgspec.Meta(max_length=256)] = ()
    st: MapStats = MapStats()
    live: bool = False


KINDS: dict[str, type[Message]] = {
    str(kind.__struct_config__.tag): kind for kind in Message.__subclasses__() if kind.__struct_config__.tag
}


def decode(raw: Mapping[str, object]) -> Message | None:
    """None for a message of a kind we do not know; ProtocolError for a known one that makes no sense."""
    tag = raw.get("t")
    kind = KINDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        return None
    try:
        return msgspec.convert(_without_nulls(raw), kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ProtocolError(f"A device sent {tag} with something wrong in it: {error}") from error


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _without_nulls(kept) for name, kept in value.items() if not _is_null(kept)}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return None if _is_null(value) else value


def _is_null(value: object) -> bool:
    """NaN and infinity count as null, as in JSON: they would pass every bound of a type."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def line(text: str) -> str:
    """Text of any length cut to a ``Line``: others drop a message whose line is longer."""
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "\u2026"


def encode(message: Message) -> dict[str, object]:
    """The map to send: flags as 1, nothing for false or absent."""
    return _plain(msgspec.to_builtins(message, builtin_types=(bytes,)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(kept) for name, kept in value.items() if kept is not None and kept is not False}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, bool) else value


def layer_words(lo: int, hi: int) -> str:
    """A half-open range as ``Layers`` writes it."""
    return f"{lo}\u2013{hi - 1}"


def read_layer_words(words: str) -> tuple[int, int] | None:
    """A half-open range from digits, anything else, digits; None when it is not one."""
    first = "".join(c if c.isascii() and c.isdigit() else " " for c in words[:40]).split()
    if len(first) != 2 or int(first[1]) < int(first[0]):
        return None
    return int(first[0]), int(first[1]) + 1
