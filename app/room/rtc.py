"""One WebRTC connection and its channels: control, hidden-state wire, keep-alive (spec: rooms §4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from aioice import Candidate
from aiortc import (
    RTCCertificate,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.exceptions import InternalError, InvalidAccessError, InvalidStateError, OperationError
from aiortc.sdp import candidate_from_sdp

from app.core.errors import LinkError
from app.room import gathering, sctp
from app.room.certificate import fingerprint_in
from app.room.gathering import GatheringConnection
from app.room.ice import IceConfig
from app.room.no_path import Attempt, End
from app.room.proofs import binding, end_fingerprint
from app.room.sdp import describes_data, only_sha256
from app.room.slices import LONGEST_SLICE

log = logging.getLogger(__name__)

WIRE_LABEL, WIRE_ID = "swarm-wire", 77
KEEPALIVE_LABEL, KEEPALIVE_ID = "swarm-ka", 78
MAX_EARLY_SLICES = 512
FAILED = "failed"
"""Why a connection ended whose every path was tried in vain."""

_DAMAGED = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    InternalError,
    InvalidAccessError,
    InvalidStateError,
    OperationError,
)


class RtcConnection:
    """A peer connection and the bytes of its channels. Sends after its end are quiet.

    What comes on the wire channel is held until ``release_wire``, so that nothing reaches a session from
    a peer that has not proved itself, and nothing sent early is lost.
    """

    def __init__(self, ice: IceConfig, label: str, certificate: RTCCertificate | None = None) -> None:
        sctp.install()
        gathering.install()
        self.on_open: Callable[[], None] = lambda: None
        self.on_control: Callable[[bytes], None] = lambda _data: None
        self.on_wire: Callable[[bytes], None] = lambda _data: None
        self.on_heard: Callable[[], None] = lambda: None
        self.on_closed: Callable[[str], None] = lambda _reason: None
        self.binding = ""
        self.peer_fingerprint = ""
        self._label = label
        self._early: list[bytes] | None = []
        self._control: RTCDataChannel | None = None
        self._dead = False
        self._closing: asyncio.Task[None] | None = None
        self._local = ""
        self._ice_config = ice
        self._tried: Attempt | None = None
        self._peer = RTCPeerConnection(ice.configuration())
        if certificate is not None:
            # aiortc takes none from outside; each connection would show one of its own.
            self._peer._RTCPeerConnection__certificates = [certificate]  # pyright: ignore[reportAttributeAccessIssue]
        self._peer.on("connectionstatechange", self._state_changed)
        self._peer.on("datachannel", self._announced)
        # Data on a stream without a channel object is thrown away, so both exist before anything is awaited.
        self._wire = self._negotiated(WIRE_LABEL, WIRE_ID, self._wire_data)
        self._keepalive = self._negotiated(
            KEEPALIVE_LABEL, KEEPALIVE_ID, self._keepalive_data, ordered=False, maxRetransmits=0
        )
        self._ice = _ice_connection(self._peer)
        self._ice.relays = ice.usable

    def _negotiated(self, label: str, channel_id: int, take: Callable[[Any], None], **options: Any) -> RTCDataChannel:
        channel = self._peer.createDataChannel(label, negotiated=True, id=channel_id, **options)
        channel.on("message", take)
        return channel

    async def make_offer(self) -> str:
        """Opens the control channel and returns the offer to send, candidates included."""
        self._use_control(self._peer.createDataChannel(self._label, ordered=True))
        await self._peer.setLocalDescription(await self._peer.createOffer())
        return self._described()

    async def take_offer(self, sdp: str) -> str:
        """Returns the answer to a peer's offer. Raises LinkError when it is no offer for data channels."""
        with understood(sdp):
            await self._peer.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
            await self._peer.setLocalDescription(await self._peer.createAnswer())
        self.binding = binding(end_fingerprint(self._described()), end_fingerprint(sdp))
        self.peer_fingerprint = fingerprint_in(sdp)
        return self._local

    async def take_answer(self, sdp: str) -> None:
        """Raises LinkError when it is no answer to this offer."""
        self.binding = binding(end_fingerprint(self._local), end_fingerprint(sdp))
        self.peer_fingerprint = fingerprint_in(sdp)
        with understood(sdp):
            await self._peer.setRemoteDescription(RTCSessionDescription(sdp, "answer"))

    def _described(self) -> str:
        self._local = only_sha256(self._peer.localDescription.sdp)
        return self._local

    async def add_candidate(self, told: Mapping[str, object]) -> None:
        """One more way to reach the peer, in the browser's form; anything unreadable is ignored."""
        text, mid, index = told.get("candidate"), told.get("sdpMid"), told.get("sdpMLineIndex")
        if not isinstance(text, str) or not text.strip() or self._dead:
            return
        try:
            candidate = candidate_from_sdp(text.removeprefix("candidate:"))
            candidate.sdpMid = mid if isinstance(mid, str) else None
            candidate.sdpMLineIndex = index if isinstance(index, int) else 0
            await self._peer.addIceCandidate(candidate)
        except (ValueError, AssertionError, IndexError, InvalidStateError) as error:
            log.debug("a candidate was ignored: %s", type(error).__name__)

    @property
    def is_open(self) -> bool:
        return not self._dead and self._control is not None and self._control.readyState == "open"

    @property
    def wire_open(self) -> bool:
        return not self._dead and self._wire.readyState == "open"

    @property
    def control_backlog(self) -> int:
        return self._control.bufferedAmount if self._control is not None else 0

    @property
    def wire_backlog(self) -> int:
        return self._wire.bufferedAmount

    @property
    def acknowledged(self) -> bool:
        """Whether the peer has everything that was sent so far."""
        transport = self._peer.sctp
        return isinstance(transport, sctp.TunedSctpTransport) and transport.acknowledged

    @property
    def keepalive_backlog(self) -> int:
        return self._keepalive.bufferedAmount

    @property
    def path(self) -> str:
        """ "direct", "relay" or "unknown"."""
        pair = self._ice._nominated.get(1)  # pyright: ignore[reportPrivateUsage]
        if pair is None:
            return "unknown"
        return "relay" if "relay" in (pair.local_candidate.type, pair.remote_candidate.type) else "direct"

    @property
    def tried(self) -> Attempt:
        """What there was to find a path with; stays after the end."""
        return self._tried or self._attempt()

    def _attempt(self) -> Attempt:
        ice, connection = self._ice_config, self._ice
        return Attempt(
            mine=_end(connection.local_candidates),
            theirs=_end(connection.remote_candidates),
            stun=bool(ice.stun) and not ice.hidden,
            relays=len(ice.usable),
            hidden=ice.hidden,
            relay_errors=connection.relay_errors,
        )

    @property
    def peer_address(self) -> str:
        """Where the peer is reached, "" while that is not known."""
        pair = self._ice._nominated.get(1)  # pyright: ignore[reportPrivateUsage]
        return str(pair.remote_candidate.host) if pair is not None else ""

    def send_control(self, data: bytes) -> bool:
        return self._control is not None and self._send(self._control, data)

    def send_wire(self, data: bytes) -> bool:
        return self._send(self._wire, data)

    def send_keepalive(self, data: bytes) -> bool:
        return self._send(self._keepalive, data)

    def _send(self, channel: RTCDataChannel, data: bytes) -> bool:
        if self._dead or channel.readyState != "open":
            return False
        try:
            channel.send(data)
        except (InvalidStateError, ConnectionError, ValueError):
            return False
        return True

    def release_wire(self) -> None:
        """Hands over what the wire channel held, and from now on each slice as it comes."""
        early, self._early = self._early or [], None
        for data in early:
            self.on_wire(data)

    def close(self, reason: str) -> None:
        """Ends the connection; ``on_closed`` is called now, the sockets go in the background."""
        if self._dead:
            return
        self._dead = True
        self._tried = self._attempt()
        self._closing = asyncio.get_running_loop().create_task(self._peer.close(), name=f"close {self._label}")
        self.on_closed(reason)

    async def closed(self) -> None:
        """Waits until nothing of the connection is left."""
        if self._closing is not None:
            await self._closing

    def _announced(self, channel: RTCDataChannel) -> None:
        """The dialer's control channel; a peer may open only one."""
        if self._control is None:
            self._use_control(channel)
        else:
            channel.close()

    def _use_control(self, channel: RTCDataChannel) -> None:
        self._control = channel
        channel.on("message", self._control_data)
        channel.on("close", lambda: self.close("closed"))
        if channel.readyState == "open":
            self.on_open()
        else:
            channel.on("open", self._control_opened)

    def _control_opened(self) -> None:
        self.on_open()

    def _control_data(self, data: Any) -> None:
        if isinstance(data, bytes) and not self._dead:
            self.on_heard()
            self.on_control(data)

    def _wire_data(self, data: Any) -> None:
        if not isinstance(data, bytes) or self._dead or len(data) > LONGEST_SLICE:
            return
        self.on_heard()
        if self._early is None:
            self.on_wire(data)
        elif len(self._early) < MAX_EARLY_SLICES:
            self._early.append(data)

    def _keepalive_data(self, _data: Any) -> None:
        self.on_heard()

    def _state_changed(self) -> None:
        if self._peer.connectionState in (FAILED, "closed"):
            self.close(self._peer.connectionState)


@contextmanager
def understood(sdp: str) -> Generator[None]:
    """Turns whatever aiortc's parser does with a damaged description into a LinkError."""
    problem = LinkError("Another device described its connection wrongly.")
    if not describes_data(sdp):
        raise problem
    try:
        yield
    except _DAMAGED as error:
        raise problem from error


def _ice_connection(peer: RTCPeerConnection) -> GatheringConnection:
    # aiortc does not say which pair of candidates it uses, nor what it gathered with; aioice keeps it.
    assert peer.sctp is not None, "a data channel makes the transport"
    connection = peer.sctp.transport.transport._connection  # pyright: ignore[reportPrivateUsage]
    assert isinstance(connection, GatheringConnection), "installed before the first connection"
    return connection


def _end(candidates: Iterable[Candidate]) -> End:
    by_kind: dict[str, list[str]] = {"host": [], "srflx": [], "relay": []}
    for candidate in candidates:
        by_kind.get(candidate.type, []).append(candidate.host)
    return End(tuple(by_kind["host"]), tuple(by_kind["srflx"]), tuple(by_kind["relay"]))
