"""Reasoning a client carries for us between requests, so that nothing is stored here (spec: product A-058, A-081)."""

from __future__ import annotations

import base64
import binascii

PREFIX = "pooled1."


def signed(reasoning: str) -> str:
    """Readable by anyone: it saves state, not a secret."""
    return PREFIX + base64.urlsafe_b64encode(reasoning.encode("utf-8", "replace")).decode()


def reasoning_of(signature: str) -> str | None:
    """None for a signature that is not ours."""
    if not signature.startswith(PREFIX):
        return None
    try:
        return base64.urlsafe_b64decode(signature[len(PREFIX) :].encode()).decode()
    except (binascii.Error, UnicodeError):
        return None
