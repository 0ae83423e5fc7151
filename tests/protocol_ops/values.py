"""How recorded cases write values that JSON cannot hold."""

from __future__ import annotations

import hashlib
import struct
from typing import Any


def decode(tagged: Any) -> Any:
    """A case's tagged value as plain Python; ``undefined`` becomes None."""
    if isinstance(tagged, list):
        return [decode(item) for item in tagged]
    if not isinstance(tagged, dict):
        return tagged
    if "$bytes" in tagged:
        return bytes.fromhex(tagged["$bytes"])
    if "$f64" in tagged:
        return struct.unpack(">d", bytes.fromhex(tagged["$f64"]))[0]
    if "$map" in tagged:
        return {key: decode(member) for key, member in tagged["$map"]}
    return None if "$undefined" in tagged else {key: decode(member) for key, member in tagged.items()}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
