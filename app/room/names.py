"""Names of devices: cleaned on arrival, unique in the room (spec: rooms §6, §7.4)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

LONGEST = 40
LONGEST_BASE = 36
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that make a line read in another order than it is written."""
MARKUP = re.compile(r"[<>\"'`&]")


def clean_name(name: object, peer_id: str) -> str:
    """A name safe to show; the peer id's first characters when nothing is left."""
    text = name if isinstance(name, str) else ""
    visible = "".join(c for c in MARKUP.sub("", text[:1000]) if c.isprintable() or unicodedata.category(c) == "Zs")
    return visible.strip()[:LONGEST].strip() or peer_id[:8]


def readable(text: str) -> str:
    """Text that can be written as UTF-8: half a character, as a broken input may give, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def clean_line(text: str) -> str:
    """A peer's sentence without what moves a cursor or turns the reading direction."""
    return "".join(c for c in text if c == "\n" or (unicodedata.category(c) not in {"Cc", "Cs"} and c not in TURNING))


def unique_name(name: str, taken: Collection[str]) -> str:
    """The name, or the name with the first free number behind it."""
    if name not in taken:
        return name
    base, number = name[:LONGEST_BASE].rstrip(), 2
    while f"{base} {number}" in taken:
        number += 1
    return f"{base} {number}"
