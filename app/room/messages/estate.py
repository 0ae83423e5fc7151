"""A room that changes hands; ours (docs/adr/011)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.room.messages.base import Count, Line, Message, Name, PeerId
from app.room.messages.start import RulesAre
from app.room.messages.talk import PastIs

Digest = Annotated[str, msgspec.Meta(max_length=64)]


class HeirAsked(Message, frozen=True, tag="ai-heir"):
    """From the creator to one member: will you own the room from now on?"""


class HeirAnswer(Message, frozen=True, tag="ai-heir-answer"):
    """``fp`` is the SHA-256 of the certificate the member will show as the room's creator (64 hex)."""

    yes: bool = False
    fp: Line = ""


class Estate(Message, frozen=True, tag="ai-estate"):
    """From the creator to its heir only: what a room is opened again with. Passes as (digest, name)."""

    passes: Annotated[tuple[tuple[Digest, Name], ...], msgspec.Meta(max_length=500)] = ()
    ask: bool = False
    api: bool = False
    rules: RulesAre = RulesAre()
    past: PastIs = PastIs()
    model: Name = ""
    ctx: Count = 0
    by: Name = ""
    host: tuple[PeerId, Name] = ("", "")
    holders: Annotated[tuple[Name, ...], msgspec.Meta(max_length=256)] = ()


class HandedOver(Message, frozen=True, tag="ai-handed-over"):
    """From the creator to everybody else: knock again, ``id`` will answer and show certificate ``fp``."""

    id: PeerId = ""
    name: Name = ""
    fp: Line = ""
