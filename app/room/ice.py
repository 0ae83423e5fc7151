"""How connections find a path: STUN servers and relays (spec: rooms §2.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aiortc import RTCConfiguration, RTCIceServer
from aiortc.rtcconfiguration import RTCIceTransportPolicy

STUN = ("stun:stun.l.google.com:19302", "stun:stun1.l.google.com:19302")
TURN_PORT = 3478
TURNS_PORT = 5349
MOST_RELAYS = 4

_RELAY = re.compile(
    r"(?P<scheme>turns?):(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+))"
    r"(?::(?P<port>[0-9]{1,5}))?(?:\?transport=(?P<transport>udp|tcp))?"
)


@dataclass(frozen=True)
class RelayAddress:
    """Where a relay listens, and how it is spoken to: datagrams, TCP, or TLS over TCP."""

    host: str
    port: int
    tcp: bool
    tls: bool


@dataclass(frozen=True)
class Relay:
    """A TURN server: "turn:host:3478?transport=udp" with its credentials."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def address(self) -> RelayAddress | None:
        """None for an address that is none of a relay's, and for TLS over UDP, which is not spoken here."""
        found = _RELAY.fullmatch(self.url)
        if found is None:
            return None
        tls = found["scheme"] == "turns"
        tcp = found["transport"] == "tcp" if found["transport"] else tls
        port = int(found["port"] or (TURNS_PORT if tls else TURN_PORT))
        if (tls and not tcp) or not 0 < port < 2**16:
            return None
        return RelayAddress(found["six"] or found["host"], port, tcp, tls)

    @property
    def valid(self) -> bool:
        """Whether it can be used; one that cannot is left out."""
        return self.address is not None


@dataclass(frozen=True)
class IceConfig:
    """``relay_only`` hides this device's addresses from others; without a valid relay it does nothing."""

    stun: tuple[str, ...] = STUN
    relays: tuple[Relay, ...] = ()
    relay_only: bool = False

    @property
    def usable(self) -> tuple[Relay, ...]:
        """The relays to ask, in order; no more than a few, since each costs a connection."""
        return tuple(dict.fromkeys(relay for relay in self.relays if relay.valid))[:MOST_RELAYS]

    @property
    def hidden(self) -> bool:
        return self.relay_only and bool(self.usable)

    def configuration(self) -> RTCConfiguration:
        """All but the relays, which ``gathering`` asks: aiortc would take the first alone, and say nothing of it."""
        policy = RTCIceTransportPolicy.RELAY if self.hidden else RTCIceTransportPolicy.ALL
        return RTCConfiguration([RTCIceServer(urls=url) for url in self.stun], iceTransportPolicy=policy)
