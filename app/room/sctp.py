"""aiortc's SCTP, tuned for messages of a few kilobytes on links with delay.

Untuned, its first window is 3 packets, it sends 4 at a time and waits a round trip for more, so 16 KB
over a 30 ms path take three round trips instead of one.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiortc
from aiortc import rtcpeerconnection, rtcsctptransport
from OpenSSL import SSL

from app.core.errors import LinkError

TESTED_VERSIONS = ("1.16.0",)
FIRST_WINDOW_PACKETS = 32
BURSTS = 16
SHORTEST_TIMEOUT_S = 0.2
LATE_SACK_S = 0.02


class TunedSctpTransport(rtcsctptransport.RTCSctpTransport):
    """Fills the window at once, and is quiet when the connection under it has died."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unacknowledged = 0
        self._late_sack: asyncio.TimerHandle | None = None
        self._sack_task: asyncio.Future[None] | None = None
        self._cwnd = FIRST_WINDOW_PACKETS * rtcsctptransport.USERDATA_MAX_LENGTH

    @property
    def acknowledged(self) -> bool:
        """Whether the peer has everything that was sent so far."""
        return not (self._data_channel_queue or self._outbound_queue or self._sent_queue)

    async def _transmit(self) -> None:
        for _ in range(BURSTS):
            in_flight = self._flight_size
            await super()._transmit()
            if self._flight_size <= in_flight or not self._outbound_queue:
                return

    async def _send_sack(self) -> None:
        """Acknowledges every second packet, and a last odd one a moment later (RFC 9260 section 6.2).

        Each acknowledgement costs both ends as much as a packet of data. Gaps are reported at once.
        """
        self._unacknowledged += 1
        self._sack_needed = False
        if self._unacknowledged >= 2 or self._sack_misordered or self._sack_duplicates:
            await self._acknowledge()
        elif self._late_sack is None:
            self._late_sack = asyncio.get_running_loop().call_later(LATE_SACK_S, self._sack_is_late)

    async def _acknowledge(self) -> None:
        self._unacknowledged = 0
        self._cancel_late_sack()
        await super()._send_sack()

    def _sack_is_late(self) -> None:
        self._late_sack = None
        self._sack_task = asyncio.ensure_future(self._acknowledge())

    def _cancel_late_sack(self) -> None:
        if self._late_sack is not None:
            self._late_sack.cancel()
            self._late_sack = None

    def _set_state(self, state: Any) -> None:
        if state == self.State.CLOSED:
            self._cancel_late_sack()
        super()._set_state(state)

    async def _send_chunk(self, chunk: Any) -> None:
        try:
            await super()._send_chunk(chunk)
        except (ConnectionError, SSL.Error):
            # Told to everyone by the connection's state; each timer and flush would log it once more.
            return


def install(version: str = aiortc.__version__) -> None:
    """Makes every later peer connection use the tuned transport. Raises LinkError for an untested aiortc."""
    if version not in TESTED_VERSIONS:
        raise LinkError(
            f"This program was not tested with aiortc {version}.",
            f"Install aiortc {TESTED_VERSIONS[-1]}.",
        )
    rtcsctptransport.SCTP_RTO_MIN = SHORTEST_TIMEOUT_S
    rtcpeerconnection.RTCSctpTransport = TunedSctpTransport  # pyright: ignore[reportPrivateImportUsage]
