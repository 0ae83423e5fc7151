"""Session descriptions cut down to what a proof can be bound to."""

from __future__ import annotations

import re

_FINGERPRINT = re.compile(r"a=fingerprint:\s*(\S+)", re.IGNORECASE)

MAX_SDP = 64 * 1024


def only_sha256(sdp: str) -> str:
    """The description without the fingerprint lines of other hashes, of which aiortc writes three a section.

    Browsers in a room accept one fingerprint only; with more, no proof can be bound to the connection.
    """
    return "".join(line for line in sdp.splitlines(keepends=True) if not _is_other_hash(line))


def describes_data(sdp: str) -> bool:
    """Whether the description is of one connection for data channels, and of nothing else.

    A peer that adds sound or video would have this device set up receivers for it.
    """
    if len(sdp) > MAX_SDP:
        return False
    lines = sdp.splitlines()
    media = [line for line in lines if line.startswith("m=")]
    needed = ("a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:")
    return (
        len(media) == 1
        and media[0].startswith("m=application ")
        and all(any(line.startswith(name) for line in lines) for name in needed)
    )


def _is_other_hash(line: str) -> bool:
    found = _FINGERPRINT.match(line)
    return found is not None and found[1].lower() != "sha-256"
