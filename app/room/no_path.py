"""Why two devices found no way to each other, and what a person can do about it (spec: rooms §22)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from app.core.errors import LinkError
from app.room.gathering import RelayError

APART = "Both are on the same network, and it keeps its devices apart, as guest Wi-Fi does."
BLOCKED = "This network seems to let no UDP out."
HOME_BITS = {4: 24, 6: 64}


@dataclass(frozen=True)
class End:
    """One end's ways to be reached: addresses by kind of candidate."""

    host: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    relay: tuple[str, ...] = ()

    @property
    def silent(self) -> bool:
        return not (self.host or self.outside or self.relay)


@dataclass(frozen=True)
class Attempt:
    """What a connection had to try with. ``stun``: a server outside was asked for this device's address."""

    mine: End = End()
    theirs: End = End()
    stun: bool = False
    relays: int = 0
    hidden: bool = False
    relay_errors: tuple[RelayError, ...] = ()


def no_path(attempt: Attempt) -> LinkError:
    """The error to show when nothing came up."""
    if attempt.relay_errors and len(attempt.relay_errors) == attempt.relays:
        first = attempt.relay_errors[0]
        way = "Everything is to go over a relay" if attempt.hidden else "No direct path was found"
        return LinkError(f"{way}, and it fails: {first.what}", first.remedy)
    if attempt.mine.silent:
        return LinkError("This computer is on no network.", "Connect it to one and try again.")
    if attempt.mine.relay:
        return LinkError(
            "The other device could not be reached, not even over the relay.",
            "Check that it is online, and that the relay's own firewall lets UDP out.",
        )
    return LinkError("The two devices cannot reach each other.", _remedy(attempt))


def _remedy(attempt: Attempt) -> str:
    if same_network(attempt.mine, attempt.theirs):
        return f"{APART} Use another Wi-Fi or a cable, or set up a relay in the settings."
    if attempt.stun and not attempt.mine.outside:
        return f"{BLOCKED} Use another network, or set up a relay over TCP or TLS in the settings."
    return "Their networks let no direct path through. Join the same Wi-Fi, or set up a relay in the settings."


def same_network(mine: End, theirs: End) -> bool:
    """Whether both seem to be behind one router: an equal address outside, or the same network at home."""
    if set(mine.outside) & set(theirs.outside):
        return True
    return bool(set(_homes(mine.host)) & set(_homes(theirs.host)))


def _homes(addresses: Iterable[str]) -> Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for address in addresses:
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            continue  # a ".local" name says nothing
        if ip.is_private and not ip.is_link_local:
            yield ipaddress.ip_network((ip, HOME_BITS[ip.version]), strict=False)
