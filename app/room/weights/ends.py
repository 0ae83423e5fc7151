"""What a link knows of its two ends, as far as lending weights needs it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from app.room.link import PeerLink
from app.room.ports import Link


@dataclass(frozen=True)
class Ends:
    """The certificate the peer shows (64 hex digits), its address, and the bytes that wait to be sent to it."""

    peer_fingerprint: str = ""
    peer_address: str = ""
    backlog: int = 0


def ends_of(link: Link) -> Ends:
    """Nothing is known of a link that is no WebRTC link."""
    if not isinstance(link, PeerLink):
        return Ends()
    return Ends(link.peer_fingerprint, link.peer_address, link.backlog)


def may_carry(link: Link, relay_configured: bool) -> bool:
    """Weights never cross a relay, nor a link that may be over one (spec: rooms §2.4)."""
    return link.path == "direct" or (link.path == "unknown" and not relay_configured)


def is_local(address: str) -> bool:
    """Whether an address is of a network that is not the internet, this computer's own loopback included."""
    ip = _ip(address)
    return ip is not None and ip.is_private and not ip.is_multicast and not ip.is_unspecified


def worth_dialing(offered: tuple[str, ...], seen: str, most: int = 4) -> list[str]:
    """Where to look for a device: first where its link already goes, then where it says it is.

    Only on a local network, and on this computer only when its link is here too: a peer must not send
    this device knocking at doors of its choice.
    """
    local = [address for address in offered if is_local(address) and not _is_loopback(address)]
    return list(dict.fromkeys([seen, *local]))[:most] if is_local(seen) else []


def _is_loopback(address: str) -> bool:
    ip = _ip(address)
    return ip is not None and ip.is_loopback


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return None
