"""References inside one schema: JSON pointers and anchors (RFC 6901, JSON Schema 2020-12 §8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote


def lookup(root: object, reference: str) -> object | None:
    """What "#", "#/a/b" or "#anchor" names, or None; nothing outside ``root`` is ever read."""
    if not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        return _anchored(root, fragment)
    found: object | None = root
    for step in fragment.split("/")[1:]:
        found = _step(found, step.replace("~1", "/").replace("~0", "~"))
    return found


def _step(value: object, name: str) -> object | None:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
        return value[int(name)]
    return None


def _anchored(root: object, anchor: str) -> object | None:
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if value.get("$anchor") == anchor:
                return value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return None
