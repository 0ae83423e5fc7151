"""Relays that the creator lends to members; ours."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.room.messages.base import Line, Message


class LentRelay(msgspec.Struct, frozen=True):
    """One relay with credentials that expire."""

    url: Line
    user: Line = ""
    password: Line = ""

    def __repr__(self) -> str:
        return f"LentRelay({self.url})"


class RelayLease(Message, frozen=True, tag="ai-relay"):
    """Only from the creator, only to members: the relays they may use for another ``life`` seconds."""

    relays: Annotated[tuple[LentRelay, ...], msgspec.Meta(max_length=8)] = ()
    life: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0
