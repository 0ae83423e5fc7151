"""aioice's candidates, ours and theirs: every relay is asked, its refusal is kept, and no candidate ends a connection.

Untouched, one relay is asked, none at an IPv6 address, and the reason is dropped when it refuses. A peer's ".local"
candidate fails the whole description where the system gives no multicast socket.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl

from aioice import Candidate, Connection, TransportPolicy
from aioice.ice import StunProtocol, relayed_candidate
from aioice.stun import TransactionFailed, TransactionTimeout
from aiortc import rtcicetransport

from app.core.errors import LinkError
from app.room.ice import Relay

log = logging.getLogger(__name__)

RELAY_S = 5.0
MOST_CANDIDATES = 64

_WRONG_CREDENTIALS = (401, 441)
_FULL = (486, 508)


class RelayError(LinkError):
    """A relay that could not be used; names it."""


class GatheringConnection(Connection):
    """``relays`` are set before anything is gathered; ``relay_errors`` is complete afterwards."""

    relays: tuple[Relay, ...] = ()
    relay_errors: tuple[RelayError, ...] = ()

    _taken = 0

    async def get_component_candidates(self, component: int, addresses: list[str], timeout: int = 5) -> list[Candidate]:
        own, found = await asyncio.gather(
            super().get_component_candidates(component, addresses, timeout),
            asyncio.gather(*(self._relayed(component, relay) for relay in self.relays)),
        )
        self.relay_errors = tuple(each for each in found if isinstance(each, RelayError))
        return [*own, *(each for each in found if isinstance(each, Candidate))]

    async def add_remote_candidate(self, remote_candidate: Candidate | None) -> None:
        """Takes the first few dozen; one that cannot be looked up is as good as none."""
        self._taken += remote_candidate is not None
        if self._taken > MOST_CANDIDATES and remote_candidate is not None:
            return
        try:
            await super().add_remote_candidate(remote_candidate)
        except OSError as error:
            log.info("a candidate cannot be looked up here: %s", error.strerror)

    async def _relayed(self, component: int, relay: Relay) -> Candidate | RelayError:
        address = relay.address
        assert address is not None, "only usable relays are given"
        try:
            async with asyncio.timeout(RELAY_S):
                candidate, protocol = await relayed_candidate(
                    component=component,
                    hide_related_address=self._transport_policy == TransportPolicy.RELAY,
                    protocol_factory=lambda: StunProtocol(self),
                    turn_server=(address.host, address.port),
                    turn_username=relay.user,
                    turn_password=relay.password,
                    turn_ssl=address.tls,
                    turn_transport="tcp" if address.tcp else "udp",
                )
        except (TransactionFailed, TransactionTimeout, OSError, TimeoutError, ValueError) as error:
            return relay_error(relay.url, error)
        if self._closing:
            await protocol.close()
            return relay_error(relay.url, ConnectionAbortedError())
        self._protocols.append(protocol)
        return candidate


def relay_error(url: str, error: Exception) -> RelayError:
    """What went wrong with the relay at ``url``, and what to do."""
    if isinstance(error, TransactionFailed):
        return _refusal(url, error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return RelayError(
            f"The relay {url} shows a certificate that this computer does not trust.",
            "Check the relay's name, or have this computer trust whoever signed its certificate.",
        )
    if isinstance(error, ssl.SSLError):
        return RelayError(f"The relay {url} does not speak TLS there.", "Check its port, or use turn: without the s.")
    if isinstance(error, socket.gaierror):
        return RelayError(f"The name of the relay {url} is not known.", "Check it in the settings.")
    return RelayError(f"The relay {url} does not answer.", "Check its address, or try it over TCP or TLS.")


def _refusal(url: str, error: TransactionFailed) -> RelayError:
    code = error.response.error_code
    if code in _WRONG_CREDENTIALS:
        return RelayError(f"The relay {url} refuses the user name or password.", "Check both in the settings.")
    if code in _FULL:
        return RelayError(f"The relay {url} is full.", "Try again later, or use another relay.")
    return RelayError(f"The relay {url} refuses to relay (error {code}).", "Ask whoever runs it.")


def install() -> None:
    """Makes every later peer connection gather this way."""
    rtcicetransport.Connection = GatheringConnection  # pyright: ignore[reportPrivateImportUsage]
