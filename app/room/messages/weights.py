"""Byte ranges of weight files between devices (spec: rooms §6.3). Ranges are written "first-last"."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.room.messages.base import Count, Line, Message

RangeText = Annotated[str, msgspec.Meta(max_length=40)]
Ranges = Annotated[tuple[RangeText, ...], msgspec.Meta(max_length=100_000)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**50)]
Shown = Annotated[bytes, msgspec.Meta(max_length=4_096)]


class InventoryRequest(Message, frozen=True, tag="ai-inv-req"):
    """Which ranges of this weight file are on your disk?"""

    url: Line = ""


class Inventory(Message, frozen=True, tag="ai-inv"):
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
