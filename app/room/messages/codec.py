"""Between a peer's map and a message."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from app.core.errors import ProtocolError
from app.room.messages import estate, presence, relays, start, states, talk, weights
from app.room.messages.base import LONGEST_LINE, Message

PARTS = (estate, presence, relays, start, states, talk, weights)
KINDS: dict[str, type[Message]] = {str(kind.__struct_config__.tag): kind for kind in Message.__subclasses__()}


def decode(raw: Mapping[str, object]) -> Message | None:
    """None for a message of a kind we do not know; ProtocolError for a known one that makes no sense."""
    tag = raw.get("t")
    kind = KINDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        return None
    try:
        message = msgspec.convert(_without_nulls(raw), kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ProtocolError(f"A device sent {tag} with something wrong in it: {error}") from error
    if _measures(kind) and not _finite(msgspec.to_builtins(message)):
        raise ProtocolError(f"A device sent {tag} with a number in it that is none.")
    return message


@cache
def _measures(kind: type[Message]) -> bool:
    """Whether messages of this kind hold numbers that need not be whole."""
    return b'"number"' in msgspec.json.encode(msgspec.json.schema(kind))


def _finite(value: object) -> bool:
    """The text "nan" is read as a number, too."""
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


JSON_MEMBERS = frozenset({"schema", "args"})
"""What a program gave as JSON: its nulls and falses mean something."""


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        named = ((str(name), kept) for name, kept in value.items() if not _is_null(kept))
        return {name: kept if name in JSON_MEMBERS else _without_nulls(kept) for name, kept in named}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return None if _is_null(value) else value


def _is_null(value: object) -> bool:
    """NaN and infinity count as null, as in JSON: they would pass every bound of a type."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def line(text: str) -> str:
    """Text of any length cut to a ``Line``: others drop a message whose line is longer."""
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "\u2026"


def in_lines(text: str, most: int = LONGEST_LINE) -> Iterator[str]:
    """A text of any length as pieces that each fit a ``Line``."""
    return (text[start : start + most] for start in range(0, len(text), most))


def rid_of(message: Message) -> str:
    """The program's ask that a message is about; "" for one about something else."""
    return getattr(message, "rid", "")


def encode(message: Message) -> dict[str, object]:
    """The map to send: flags as 1, nothing for false or absent."""
    return _plain(msgspec.to_builtins(message, builtin_types=(bytes,)))


def encode_part(part: msgspec.Struct) -> dict[str, object]:
    """A struct inside a message that is built by hand."""
    return _plain(msgspec.to_builtins(part))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        said = ((name, kept) for name, kept in value.items() if kept is not None and kept is not False)
        return {name: kept if name in JSON_MEMBERS else _plain(kept) for name, kept in said}
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
