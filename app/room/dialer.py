"""Opening connections through a room server, and answering those that others open (spec: rooms §2.3)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from aiortc import RTCCertificate

from app.core.clock import Clock
from app.core.errors import LinkError
from app.room.certificate import fingerprint_of, new_certificate
from app.room.ice import IceConfig
from app.room.line import STRIPE_LABEL, Line
from app.room.peerjs import SignalMessage
from app.room.rtc import RtcConnection
from app.room.signaling import Signaling
from app.room.tasks import Tasks

log = logging.getLogger(__name__)

OPEN_S = 40.0
MAX_INCOMING = 64
MAX_CANDIDATES = 64
MAX_UNKNOWN = 32
MAX_TEXT_ID = 128

Candidate = Mapping[str, object]


class PeerUnavailable(LinkError):
    """The room server knows no such device; another server may."""


@dataclass
class _Attempt:
    """One connection from its offer until it ends. ``opened`` is done once, with the line or an error."""

    line: Line
    opened: asyncio.Future[Line]
    described: bool = False
    early: list[Candidate] = field(default_factory=list[Candidate])


class Dialer:
    """Connections by id. ``on_line`` gets every connection that another device has opened to this one."""

    def __init__(self, signaling: Signaling, ice: IceConfig, clock: Clock) -> None:
        self.on_line: Callable[[Line], None] = lambda _line: None
        self._signaling = signaling
        self._ice = ice
        self._certificate = new_certificate()
        self._clock = clock
        self._attempts: dict[str, _Attempt] = {}
        self._unknown: dict[str, list[Candidate]] = {}
        self._connections: set[RtcConnection] = set()
        self._tasks = Tasks()
        signaling.on_message = self._signaled

    @property
    def fingerprint(self) -> str:
        """Of the certificate all connections of this device show: 64 hex digits."""
        return fingerprint_of(self._certificate)

    @property
    def certificate(self) -> RTCCertificate:
        """The one all connections of this device show."""
        return self._certificate

    async def dial(self, peer_id: str, stripe: bool = False, timeout: float = OPEN_S) -> Line:
        """Opens a connection. Raises PeerUnavailable; LinkError when none is up within ``timeout`` s."""
        connection_id = f"dc_{secrets.token_hex(8)}"
        attempt = self._begin(peer_id, connection_id, STRIPE_LABEL if stripe else connection_id, dialed=True)
        try:
            async with asyncio.timeout(timeout):
                offer = await attempt.line.connection.make_offer()
                self._signaling.send("OFFER", peer_id, _offer_payload(attempt.line, offer))
                return await attempt.opened
        except TimeoutError as error:
            attempt.line.close("no connection came up")
            raise LinkError(
                "The other device could not be reached.", "Check that both are online, or set up a relay."
            ) from error
        except BaseException:
            attempt.line.close("given up")
            raise

    async def close(self) -> None:
        """Ends every connection and waits until nothing of it is left."""
        ending = list(self._connections)
        for connection in ending:
            connection.close("closed")
        await asyncio.gather(*(connection.closed() for connection in ending))
        await self._tasks.close()

    def _begin(self, peer_id: str, connection_id: str, label: str, dialed: bool) -> _Attempt:
        connection = RtcConnection(self._ice, label, self._certificate)
        line = Line(connection, peer_id, connection_id, label, dialed, self._clock)
        opened: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        # A connection that fails after its dialer gave up has nobody left to tell.
        opened.add_done_callback(lambda future: future.cancelled() or future.exception())
        attempt = self._attempts[connection_id] = _Attempt(line, opened)
        self._connections.add(connection)
        connection.on_open = lambda: self._opened(attempt)
        line.on_gone = lambda reason: self._gone(connection_id, attempt, reason)
        return attempt

    def _opened(self, attempt: _Attempt) -> None:
        if attempt.opened.done():
            return
        attempt.opened.set_result(attempt.line)
        if not attempt.line.dialed:
            self.on_line(attempt.line)

    def _gone(self, connection_id: str, attempt: _Attempt, reason: str) -> None:
        if self._attempts.get(connection_id) is attempt:
            del self._attempts[connection_id]
        if not attempt.opened.done():
            attempt.opened.set_exception(LinkError(f"The connection failed: {reason}."))
        self._tasks.start(self._forget(attempt.line.connection), f"close {connection_id}")

    async def _forget(self, connection: RtcConnection) -> None:
        await asyncio.shield(asyncio.ensure_future(connection.closed()))
        self._connections.discard(connection)

    def _signaled(self, message: SignalMessage) -> None:
        if message.kind == "EXPIRE":
            self._expired(message.source)
        elif message.kind in ("OFFER", "ANSWER", "CANDIDATE"):
            connection_id = message.payload.get("connectionId")
            if isinstance(connection_id, str) and 0 < len(connection_id) <= MAX_TEXT_ID:
                self._about(connection_id, message)

    def _about(self, connection_id: str, message: SignalMessage) -> None:
        attempt = self._attempts.get(connection_id)
        if attempt is not None and attempt.line.peer_id != message.source:
            return
        if message.kind == "OFFER":
            self._offered(connection_id, attempt, message)
        elif message.kind == "CANDIDATE":
            self._candidate(connection_id, attempt, message.payload)
        elif attempt is not None and attempt.line.dialed and not attempt.described:
            sdp = _sdp(message.payload)
            if sdp:
                self._tasks.start(self._answered(attempt, sdp), f"answer {connection_id}")

    def _expired(self, peer_id: str) -> None:
        for attempt in list(self._attempts.values()):
            if attempt.line.peer_id == peer_id and attempt.line.dialed and not attempt.opened.done():
                attempt.opened.set_exception(
                    PeerUnavailable("The room was not found.", "Check the code, or ask for a new link.")
                )

    def _offered(self, connection_id: str, earlier: _Attempt | None, message: SignalMessage) -> None:
        if earlier is not None:
            earlier.line.close("replaced")
        payload, sdp = message.payload, _sdp(message.payload)
        label = payload.get("label")
        incoming = sum(not attempt.line.dialed and not attempt.opened.done() for attempt in self._attempts.values())
        if not sdp or payload.get("serialization") != "binary" or not message.source or incoming >= MAX_INCOMING:
            return
        known = label if isinstance(label, str) else connection_id
        attempt = self._begin(message.source, connection_id, known, dialed=False)
        attempt.early = self._unknown.pop(connection_id, [])
        self._tasks.start(self._answer(attempt, sdp), f"offer {connection_id}")

    async def _answer(self, attempt: _Attempt, sdp: str) -> None:
        line = attempt.line
        try:
            async with asyncio.timeout(OPEN_S):
                answer = await line.connection.take_offer(sdp)
                await self._described(attempt)
                self._signaling.send("ANSWER", line.peer_id, _answer_payload(line, answer))
                await attempt.opened
        except (LinkError, TimeoutError) as error:
            log.info("a connection from %s failed: %s", line.peer_id, error)
            line.close("failed")

    async def _answered(self, attempt: _Attempt, sdp: str) -> None:
        try:
            await attempt.line.connection.take_answer(sdp)
            await self._described(attempt)
        except LinkError as error:
            log.info("%s", error.what)
            attempt.line.close("failed")

    async def _described(self, attempt: _Attempt) -> None:
        """Both ends are described: candidates that came earlier can be used."""
        attempt.described = True
        early, attempt.early = attempt.early, []
        for candidate in early:
            await attempt.line.connection.add_candidate(candidate)

    def _candidate(self, connection_id: str, attempt: _Attempt | None, payload: Mapping[str, object]) -> None:
        told = payload.get("candidate")
        if not isinstance(told, dict):
            return
        candidate = cast("Candidate", told)
        if attempt is not None and attempt.described:
            name = f"candidate {connection_id}"
            self._tasks.start(attempt.line.connection.add_candidate(candidate), name)
            return
        if attempt is None and connection_id not in self._unknown and len(self._unknown) >= MAX_UNKNOWN:
            self._unknown.pop(next(iter(self._unknown)))
        early = attempt.early if attempt is not None else self._unknown.setdefault(connection_id, [])
        if len(early) < MAX_CANDIDATES:
            early.append(candidate)


def _sdp(payload: Mapping[str, object]) -> str:
    described = payload.get("sdp")
    sdp = cast("Mapping[str, object]", described).get("sdp") if isinstance(described, dict) else None
    return sdp if isinstance(sdp, str) else ""


def _offer_payload(line: Line, sdp: str) -> dict[str, object]:
    return {
        "sdp": {"type": "offer", "sdp": sdp},
        "type": "data",
        "connectionId": line.connection_id,
        "label": line.label,
        "reliable": True,
        "serialization": "binary",
    }


def _answer_payload(line: Line, sdp: str) -> dict[str, object]:
    return {"sdp": {"type": "answer", "sdp": sdp}, "type": "data", "connectionId": line.connection_id}
