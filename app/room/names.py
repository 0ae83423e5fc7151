"""Names of devices: cleaned on arrival, unique in the room (spec: rooms §6, §7.4)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

LONGEST = 40
LONGEST_BASE = 36
MARKUP = re.compile(r"[<>\"'`&]")


def clean_name(name: object, peer_id: str) -> str:
    """A name safe to show; the peer id's first characters when nothing is left."""
    text = name if isinstance(name, str) else ""
    visible = "".join(c for c in MARKUP.sub("", text[:1000]) if unicodedata.category(c) not in {"Cc", "Cf"})
    return visible.strip()[:LONGEST].strip() or peer_id[:8]


def readable(text: str) -> str:
    """Text that can be written as UTF-8: half a character, as a broken input may give, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unique_name(name: str, taken: Collection[str]) -> str:
    """The name, or the name with the first free number behind it."""
    if name not in taken:
        return name
    base, number = name[:LONGEST_BASE].rstrip(), 2
    while f"{base} {number}" in taken:
        number += 1
    return f"{base} {number}"
