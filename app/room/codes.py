"""Room codes as typed, shown and carried by links (spec: rooms §2.1, §28)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from urllib.parse import parse_qs

ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
CODE_LENGTH = 6
PEER_ID_PREFIX = "pooled-room-"

_FAIR_BELOW = 240
_SYMBOLS = frozenset(ALPHABET)
_IGNORED = re.compile(r"[\s\ufeff_.-]")
_PATH = re.compile(r"/(?:r|room)/([A-Za-z0-9]{4,6})/?$")
_FRAGMENT = re.compile(r"#([A-Za-z0-9]{4,6})$")
_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")

Draw = Callable[[int], bytes]
"""A source of that many random bytes."""


def random_code(length: int = CODE_LENGTH, draw: Draw = secrets.token_bytes) -> str:
    """A fresh code, each symbol equally likely."""
    code = ""
    while len(code) < length:
        fair = (byte for byte in draw(2 * length) if byte < _FAIR_BELOW)
        code += "".join(ALPHABET[byte % len(ALPHABET)] for byte in fair)
    return code[:length]


def parse_code(text: str) -> str:
    """The code in what a person typed, or "" when there is none."""
    code = _IGNORED.sub("", text.upper())
    return code if len(code) in (4, 6) and _SYMBOLS.issuperset(code) else ""


def format_code(code: str) -> str:
    """Six symbols as two groups of three; any other text as it is."""
    return f"{code[:3]}-{code[3:]}" if len(code) == CODE_LENGTH else code


def code_from_location(path: str, query: str, fragment: str) -> str:
    """The code a link carries: in its path, else its ``code`` query, else its fragment; "" without one.

    ``query`` and ``fragment`` with their leading "?" and "#". The first place that holds something decides.
    """
    found = _PATH.search(path)
    if found is not None:
        return _linked_code(found[1])
    asked = parse_qs(query.removeprefix("?")).get("code", [""])[0].strip()
    if asked:
        return _linked_code(asked)
    found = _FRAGMENT.match(fragment)
    return _linked_code(found[1]) if found is not None and found[1].lower() != "debug" else ""


def _linked_code(text: str) -> str:
    code = text.upper()
    return code if 4 <= len(code) <= 6 and _SYMBOLS.issuperset(code) else ""


def is_key(text: object) -> bool:
    """Whether ``text`` has the form of an invite key, a pass or a nonce: 22 to 64 base64url symbols."""
    return isinstance(text, str) and _KEY.fullmatch(text) is not None


def key_from_fragment(fragment: str) -> str:
    """The invite key among a fragment's parts, or ""."""
    for part in fragment.removeprefix("#").split("&"):
        name, _, value = part.partition("=")
        key = value.rstrip("=")
        if name == "k" and is_key(key):
            return key
    return ""


def key_fragment(key: str) -> str:
    """The fragment that carries ``key``, or "" when it is no key."""
    return f"#k={key}" if is_key(key) else ""


def creator_id(code: str) -> str:
    """The peer id under which the creator of room ``code`` is registered."""
    return PEER_ID_PREFIX + code


def code_of(creator: str) -> str:
    """The code of the room that a creator's peer id names."""
    return creator.removeprefix(PEER_ID_PREFIX)
