"""Invite links: everything a friend's device needs to find a room and be let in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

from app.core.errors import RoomError
from app.room.codes import code_from_location, key_from_fragment, parse_code

APP_SCHEME = "pooled"

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Invite:
    """A room's code with what its link may carry beside it.

    ``key`` is the invite key, ``origin`` the page a browser opens ("http://192.168.1.20:7420"), ``signal``
    the room server when it is not the usual one, ``fingerprint`` the SHA-256 (64 hex) of the creator's
    certificate, for pages that cannot trust their own connection.
    """

    code: str
    key: str = ""
    origin: str = ""
    signal: str = ""
    fingerprint: str = ""

    def web_link(self) -> str:
        """The link for a browser; needs ``origin``. The key stands in the fragment, which no server sees."""
        return f"{self.origin.rstrip('/')}/r/{self.code}{self._query()}{self._fragment()}"

    def app_link(self) -> str:
        """The link that opens this application. The code is its fragment's first part."""
        return f"{APP_SCHEME}://r/{self.code}{self._query()}{self._fragment()}"

    def _query(self) -> str:
        return f"?signal={quote(self.signal, safe='')}" if self.signal else ""

    def _fragment(self) -> str:
        parts = [("k", self.key), ("fp", self.fingerprint)]
        carried = "&".join(f"{name}={value}" for name, value in parts if value)
        return f"#{carried}" if carried else ""


def parse_invite(text: str) -> Invite:
    """Reads a typed code or a pasted link of any form. Raises RoomError when there is no code in it."""
    text = text.strip()
    code = parse_code(text)
    invite = Invite(code) if code else _parse_link(text)
    if invite is None:
        raise RoomError("That is not a room code or an invite link.", "A code looks like 4TK-G9P.")
    return invite


def _parse_link(text: str) -> Invite | None:
    try:
        url = urlsplit(text if "://" in text else f"//{text}")
    except ValueError:
        return None
    # In pooled://r/CODE the "r" stands where a web link has its address.
    path = f"/{url.netloc}{url.path}" if url.scheme == APP_SCHEME else url.path
    query = f"?{url.query}" if url.query else ""
    code = code_from_location(path, query, f"#{url.fragment}" if url.fragment else "")
    if not code:
        return None
    origin = f"{url.scheme}://{url.netloc}" if url.scheme in ("http", "https") else ""
    signal = parse_qs(url.query).get("signal", [""])[0]
    return Invite(code, key_from_fragment(url.fragment), origin, signal, _fingerprint(url.fragment))


def _fingerprint(fragment: str) -> str:
    value = parse_qs(fragment).get("fp", [""])[0].replace(":", "").lower()
    return value if _FINGERPRINT.fullmatch(value) else ""
