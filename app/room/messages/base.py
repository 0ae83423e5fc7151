"""What every message is made of: bounded types and the base class."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

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
Real = Annotated[float, msgspec.Meta(ge=-(2**53), le=2**53)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**53)]
Ms = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Rate = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Stamp = Annotated[float, msgspec.Meta(ge=0, le=2**53)]
Layer = Annotated[int, msgspec.Meta(ge=0, le=4_096)]
ByName = Annotated[dict[Name, Name], msgspec.Meta(max_length=256)]
NumberByName = Annotated[dict[Name, Real], msgspec.Meta(max_length=256)]
Slots = Annotated[tuple[Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)], ...], msgspec.Meta(max_length=256)]
RawMeta = Annotated[dict[str, Any], msgspec.Meta(max_length=64)]


class Message(msgspec.Struct, frozen=True, tag_field="t"):
    """Base of all messages; the tag is the member ``t``."""
