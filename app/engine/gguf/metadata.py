"""The key-value section of a GGUF header (spec: engine §1.1)."""

from __future__ import annotations

import struct
from typing import Any

from app.engine.gguf.cursor import Cursor

Metadata = dict[str, Any]

MAX_KEYS = 65_536
MAX_KEY_BYTES = 1024
MAX_TEXT_BYTES = 16 << 20
MAX_ITEMS = 16_000_000

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9


def read_metadata(cursor: Cursor, count: int) -> Metadata:
    """``count`` pairs; a repeated key keeps its first value."""
    if count > MAX_KEYS:
        raise cursor.damaged(f"it announces {count} metadata keys")
    found: Metadata = {}
    for _ in range(count):
        key = cursor.text(MAX_KEY_BYTES)
        found.setdefault(key, _value(cursor, cursor.u32()))
    return found


def _value(cursor: Cursor, kind: int) -> Any:
    if kind in _SCALARS:
        return cursor.number(_SCALARS[kind])
    if kind == _BOOL:
        return cursor.take(1) != b"\0"
    if kind == _STRING:
        return cursor.text(MAX_TEXT_BYTES)
    if kind == _ARRAY:
        return _array(cursor)
    raise cursor.damaged(f"metadata type {kind} does not exist")


def _array(cursor: Cursor) -> list[Any]:
    kind, count = cursor.u32(), cursor.u64()
    if count > MAX_ITEMS:
        raise cursor.damaged(f"it announces a list of {count} items")
    if kind in _SCALARS:
        form = _SCALARS[kind]
        return list(struct.unpack(f"<{count}{form}", cursor.take(count * struct.calcsize(form))))
    if kind == _BOOL:
        return [byte != 0 for byte in cursor.take(count)]
    if kind == _STRING:
        # Eight bytes of length each: a promise of more strings than bytes is a lie.
        if count * 8 > cursor.left:
            raise cursor.damaged(f"it announces {count} texts where {cursor.left} bytes are left")
        return [cursor.text(MAX_TEXT_BYTES) for _ in range(count)]
    raise cursor.damaged(f"a list of type {kind} does not exist")
