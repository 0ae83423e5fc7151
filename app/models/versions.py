"""Which version of a file a server has: a word of its answer that changes with the file (RFC 9110 §8.8)."""

from __future__ import annotations

import re

import aiohttp

_LINKED = "X-Linked-Etag"
_LONGEST = 200
_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')


def version_of(answer: aiohttp.ClientResponse) -> str:
    """The hub's own word for the file where there is one, else the server's; "" when nobody names a version."""
    linked = linked_version(answer)
    tag = linked or answer.headers.get("ETag", "")
    # A weak tag promises the same meaning, not the same bytes.
    return "" if tag.startswith("W/") else (tag or answer.headers.get("Last-Modified", ""))[:_LONGEST]


def linked_version(answer: aiohttp.ClientResponse) -> str:
    """What the hub says of the file before it sends on to where the bytes lie."""
    said = (part.headers.get(_LINKED, "") for part in (*answer.history, answer))
    return next((tag for tag in said if tag), "")


def linked_sha256(answer: aiohttp.ClientResponse) -> str:
    """The file's SHA-256 as the hub knows it, "" when it does not say one."""
    match = _SHA256.fullmatch(linked_version(answer))
    return match[1] if match else ""
