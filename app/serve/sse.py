"""Server-sent events as bytes."""

from __future__ import annotations

import json

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
DONE = b"data: [DONE]\n\n"


def data(value: object) -> bytes:
    """Half letters, which a model's bytes may give, are replaced."""
    return f"data: {_ENCODER.encode(value)}\n\n".encode("utf-8", "replace")


def event(name: str, value: object) -> bytes:
    return f"event: {name}\ndata: {_ENCODER.encode(value)}\n\n".encode("utf-8", "replace")


def comment(text: str) -> bytes:
    """Ignored by every reader; keeps the connection alive."""
    return f": {text}\n\n".encode()
