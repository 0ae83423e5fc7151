"""Which of this computer's addresses others on the same network can reach."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

LOOPBACK = "127.0.0.1"

# Bridges of containers and tunnels: real addresses, but not the network the friends are on.
_VIRTUAL = (
    "docker",
    "br-",
    "veth",
    "virbr",
    "vmnet",
    "vbox",
    "tun",
    "tap",
    "utun",
    "wg",
    "tailscale",
    "zt",
    "vethernet",
)


@dataclass(frozen=True)
class Interface:
    """One address of one network interface that is up."""

    name: str
    address: str

    @property
    def virtual(self) -> bool:
        return self.name.lower().startswith(_VIRTUAL)


def best_address(interfaces: Iterable[Interface], routed: str = "") -> str:
    """The address for links: real before virtual, IPv4 before IPv6, private before public, ``routed`` first.

    ``routed`` is the address that leads out of here. Without any network, the loopback address.
    """
    return ranked_addresses(interfaces, routed)[0]


def ranked_addresses(interfaces: Iterable[Interface], routed: str = "") -> tuple[str, ...]:
    """All that are of use, best first; the loopback address alone where there are none."""
    usable = [interface for interface in interfaces if _usable(interface.address)]
    ranked = sorted(usable, key=lambda each: _rank(each, routed))
    return tuple(each.address for each in ranked) or (LOOPBACK,)


def _usable(address: str) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast)


def _rank(interface: Interface, routed: str) -> tuple[bool, bool, bool, bool]:
    ip = ipaddress.ip_address(interface.address)
    return interface.virtual, ip.version == 6, interface.address != routed, not ip.is_private


def interfaces() -> list[Interface]:
    """Addresses of the interfaces that are up."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    families = (socket.AF_INET, socket.AF_INET6)
    return [
        Interface(name, entry.address.split("%")[0])
        for name, entries in psutil.net_if_addrs().items()
        if name in up
        for entry in entries
        if entry.family in families
    ]


def routed_address() -> str:
    """The address the system would speak from to the outside; nothing is sent. "" without a way out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address kept free for documentation
            return str(probe.getsockname()[0])
        except OSError:
            return ""


def lan_address() -> str:
    """This computer's address on the local network as it is now."""
    return lan_addresses()[0]


def lan_addresses() -> tuple[str, ...]:
    """All of this computer's addresses that others may reach it at, best first."""
    return ranked_addresses(interfaces(), routed_address())
