"""From Start to a running model, and what befalls it (spec: rooms §6.2)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.room.messages.base import (
    MODEL_HOST,
    PROTOCOL_VERSION,
    ByName,
    Count,
    Layer,
    Line,
    Message,
    Name,
    NumberByName,
    PeerId,
    Rate,
    Real,
    Slots,
    Whole,
)
from app.room.messages.weights import Ranges


class StartRequest(Message, frozen=True, tag="ai-start-req"):
    """``ctx`` 0: the model's own context."""

    model: Name
    boss: PeerId = ""
    by: Name = ""
    ctx: Count = 0


class StartRefused(Message, frozen=True, tag="ai-start-refused"):
    why: Line = ""


class ModelHostIs(Message, frozen=True, tag="ai-modelhost"):
    """``id`` "": nobody runs a model any more."""

    id: PeerId = ""


class StyleWords(msgspec.Struct, frozen=True):
    """How answers are to sound, in the words of ``prompt.chat``."""

    persona: Name = "default"
    sampling: Name = "focused"
    thinking: bool = False
    length: Name = "normal"


class RulesAre(Message, frozen=True, tag="ai-rules"):
    """Ours: the creator's settings, for whichever device runs the model."""

    visibility: Name = "all"
    style: StyleWords = StyleWords()
    split: Name = "speed"
    redeal: bool = False
    kv: Name = "f16"
    hidden: Name = "f16"
    checkpoints: Count = 2
    disk: bool = False
    noapi: bool = False
    """Programs may not ask; turned round, because a creator that does not say so lets them."""


class Offload(msgspec.Struct, frozen=True):
    """Which layers' experts a device parks in RAM, and in how much memory."""

    lo: Layer
    hi: Layer
    vramBytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)]
    ramBytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)]


class Load(Message, frozen=True, tag="ai-load"):
    """``next`` may be MODEL_HOST. Ours: ``prev``, the only device whose frames count, and ``hidden``, how hidden
    states travel ("f16", or "f32" where all devices of the chain said they can)."""

    model: Name
    range: tuple[Layer, Layer]
    ctx: Count
    kv: Name = "f16"
    next: PeerId = MODEL_HOST
    host: PeerId = ""
    prev: PeerId = ""
    v: Whole = PROTOCOL_VERSION
    offload: Offload | None = None
    hidden: Name = "f16"
    inv: Annotated[dict[PeerId, Ranges], msgspec.Meta(max_length=256)] = msgspec.field(default_factory=dict)


class Layers(Message, frozen=True, tag="ai-layers"):
    """``by`` has ranges "lo–hi", counted from 0 with the last layer included. Ours: ``tps``, the words a second that
    are expected of them, 0 for unknown."""

    by: ByName = msgspec.field(default_factory=dict)
    held: NumberByName = msgspec.field(default_factory=dict)
    out: ByName = msgspec.field(default_factory=dict)
    tps: Rate = 0.0


class LoadShare(Message, frozen=True, tag="ai-progress"):
    pct: Real = 0.0


class HostProgress(Message, frozen=True, tag="ai-hostprog"):
    all: NumberByName = msgspec.field(default_factory=dict)
    at: Real = 0.0


class Ready(Message, frozen=True, tag="ai-ready"):
    """``ckpt``: this device saves, loads and drops its state; ``slots`` it has read back from its disk."""

    ckpt: bool = False
    slots: Slots = ()


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
    out: ByName = msgspec.field(default_factory=dict)


class Share(Message, frozen=True, tag="ai-share"):
    gb: Real = 0.0
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
