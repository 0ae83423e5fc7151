"""How connections find a path: STUN servers and relays (spec: rooms §2.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aiortc import RTCConfiguration, RTCIceServer
from aiortc.rtcconfiguration import RTCIceTransportPolicy

STUN = ("stun:stun.l.google.com:19302", "stun:stun1.l.google.com:19302")
PORT = 3478

# No IPv6 numbers: aiortc takes none, and would refuse to make any connection.
_RELAY = re.compile(r"turns?:[A-Za-z0-9.-]+(?::([0-9]{1,5}))?(?:\?transport=(?:udp|tcp))?")


@dataclass(frozen=True)
class Relay:
    """A TURN server: "turn:host:3478?transport=udp" with its credentials."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def valid(self) -> bool:
        """Whether the address has the form of a relay's; one that has not is left out."""
        found = _RELAY.fullmatch(self.url)
        return found is not None and 0 < int(found[1] or PORT) < 2**16


@dataclass(frozen=True)
class IceConfig:
    """``relay_only`` hides this device's addresses from others; without a valid relay it does nothing."""

    stun: tuple[str, ...] = STUN
    relays: tuple[Relay, ...] = ()
    relay_only: bool = False

    def configuration(self) -> RTCConfiguration:
        relays = [relay for relay in self.relays if relay.valid]
        servers = [RTCIceServer(urls=url) for url in self.stun]
        servers += [RTCIceServer(urls=r.url, username=r.user, credential=r.password) for r in relays]
        hidden = self.relay_only and bool(relays)
        policy = RTCIceTransportPolicy.RELAY if hidden else RTCIceTransportPolicy.ALL
        return RTCConfiguration(iceServers=servers, iceTransportPolicy=policy)
