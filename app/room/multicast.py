"""Multicast DNS on every network card that takes it: one that does not must not silence the others."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
import struct
from collections.abc import Sequence

from zeroconf.asyncio import AsyncZeroconf

from app.room.lan_address import Interface, interfaces

log = logging.getLogger(__name__)

GROUP_4, GROUP_6 = "224.0.0.251", "ff02::fb"
IPV6 = getattr(socket, "IPPROTO_IPV6", 41)


def open_zeroconf() -> AsyncZeroconf:
    """Raises OSError when no network here takes multicast."""
    usable = multicast_addresses(interfaces())
    if not usable:
        raise OSError(errno.ENODEV, "no network takes multicast")
    try:
        return AsyncZeroconf(interfaces=list(usable))
    except (OSError, RuntimeError) as error:
        four = [address for address in usable if ":" not in address]
        if len(four) in (0, len(usable)):
            raise OSError(errno.ENODEV, str(error)) from error
        log.info("multicast without IPv6: %s", error)
        return AsyncZeroconf(interfaces=list(four))


def multicast_addresses(known: Sequence[Interface]) -> tuple[str, ...]:
    """One address a version and card, of the cards that can join the group."""
    chosen: dict[tuple[str, int], str] = {}
    for each in known:
        ip = ipaddress.ip_address(each.address)
        key = (each.name, ip.version)
        if not ip.is_loopback and key not in chosen and takes_multicast(each):
            chosen[key] = each.address
    return tuple(chosen.values())


def takes_multicast(interface: Interface) -> bool:
    """Whether this computer may join the group through that card just now."""
    try:
        if ":" in interface.address:
            _join_6(interface.name)
        else:
            _join_4(interface.address)
    except OSError as error:
        log.info("%s takes no multicast: %s", interface.name, error.strerror)
        return False
    return True


def _join_4(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        joined = socket.inet_aton(GROUP_4) + socket.inet_aton(address)
        probe.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        probe.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))


def _join_6(name: str) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        index = struct.pack("@I", socket.if_nametoindex(name))
        probe.setsockopt(IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, GROUP_6) + index)
        probe.setsockopt(IPV6, socket.IPV6_MULTICAST_IF, index)
