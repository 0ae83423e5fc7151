"""What a room announces of itself on the local network, and what is believed of such an announcement.

A random salt and the code's scrypt hash under it: whoever knows the code can tell that the announcement is meant;
whoever does not would have to try codes at tens of milliseconds each, and a code alone still lets nobody in. Beside
it the creator's display name and the alias that ``near`` explains, for those who choose the room from a list.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo

from app.room.names import clean_name
from app.room.near import Near, near_of
from app.room.signal_servers import SignalServer

SERVICE = "_pooled-room._tcp.local."
MOST_ADDRESSES = 4
SALT_BYTES = 16
HASH_BYTES = 32
TIME_TO_LIVE_S = 120
LONGEST_NAME_BYTES = 120

# scrypt's cost: 16 MB and some tens of milliseconds a guess.
_N, _R, _P = 1 << 14, 8, 1


@dataclass(frozen=True)
class Announcement:
    """A room to be announced: ``name`` is its creator's, ``alias`` "" keeps it off the lists."""

    code: str
    name: str = ""
    alias: str = ""


@dataclass(frozen=True)
class Advert:
    """What one announcement says: where its room server is, which code it answers to, whose room it is."""

    salt: bytes
    hash: bytes
    addresses: tuple[str, ...]
    port: int
    name: str = ""
    alias: str = ""

    def meant_by(self, code: str) -> bool:
        """Costs tens of milliseconds: call it off the event loop."""
        return hmac.compare_digest(hashed(code, self.salt), self.hash)

    @property
    def servers(self) -> tuple[SignalServer, ...]:
        return tuple(SignalServer(address, self.port, secure=False) for address in self.addresses)

    @property
    def near(self) -> Near | None:
        """Where to knock without a code; None for a room that is not to be listed."""
        return near_of(self.alias, self.servers) if self.name else None


def hashed(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=_N, r=_R, p=_P, dklen=HASH_BYTES)


def service_of(room: Announcement, addresses: Sequence[str], port: int) -> AsyncServiceInfo:
    """The announcement in the library's form. Costs one hash: call it off the event loop."""
    salt, instance = secrets.token_bytes(SALT_BYTES), secrets.token_hex(6)
    said = {"s": salt.hex(), "h": hashed(room.code, salt).hex()}
    if room.alias:
        said |= {"n": _short(room.name), "i": room.alias}
    return AsyncServiceInfo(
        SERVICE,
        f"{instance}.{SERVICE}",
        port=port,
        properties=said,
        # A name of its own: the computer's would tell more than the creator chose to.
        server=f"pooled-{instance}.local.",
        parsed_addresses=list(addresses[:MOST_ADDRESSES]),
        host_ttl=TIME_TO_LIVE_S,
        other_ttl=TIME_TO_LIVE_S,
    )


def _short(name: str) -> str:
    return name.encode()[:LONGEST_NAME_BYTES].decode(errors="ignore")


def read_advert(info: AsyncServiceInfo) -> Advert | None:
    """The announcement as it came from the network; None when it is none of ours."""
    said = info.properties
    salt, digest, port = _unhex(said.get(b"s")), _unhex(said.get(b"h")), info.port
    if len(salt) != SALT_BYTES or len(digest) != HASH_BYTES or not port:
        return None
    near = [address for address in info.parsed_addresses(IPVersion.All) if _near(address)]
    if not near:
        return None
    name, alias = clean_name(_text(said.get(b"n")), ""), _text(said.get(b"i"))
    return Advert(salt, digest, tuple(near[:MOST_ADDRESSES]), port, name, alias)


def _unhex(text: bytes | None) -> bytes:
    try:
        return bytes.fromhex(_text(text))
    except ValueError:
        return b""


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode(errors="replace")


def _near(address: str) -> bool:
    """An announcement that sends people out to the internet is not believed."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return ip.is_private and not ip.is_link_local and not ip.is_unspecified
